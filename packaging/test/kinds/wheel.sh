# shellcheck shell=sh
# The wheel, in a virtual environment.
prepare() {
    python3 -m venv /opt/venv
    ln -s /opt/venv/bin/portway /usr/local/bin/portway
}

install_version() { /opt/venv/bin/pip install --quiet --no-index --find-links /previous --find-links /release "portway==$1"; }

installed_version() { /opt/venv/bin/pip show portway | sed -n 's/^Version: //p'; }

uninstall() { /opt/venv/bin/pip uninstall --quiet --yes portway; }
