# shellcheck shell=sh disable=SC2154 # new is assigned by in-root.sh
# The tarball, unpacked by hand.
release_of() { if [ "$1" = "$new" ]; then echo /release; else echo /previous; fi; }

prepare() { :; }

install_version() {
    rm -rf /opt/portway-*
    tar -xzf "$(release_of "$1")"/portway-"$1"-*.tar.gz -C /opt
    ln -sf /opt/portway-"$1"-*/portway /usr/local/bin/portway
}

installed_version() { basename "$(dirname "$(readlink /usr/local/bin/portway)")" | cut -d- -f2; }

uninstall() { rm -rf /opt/portway-* /usr/local/bin/portway; }
