# shellcheck shell=sh disable=SC2154 # new is assigned by in-root.sh
# `uvx portway` installs and starts in one: there is nothing to upgrade or remove but uv's cache.
prepare() { :; }

install_version() { :; }

program() { uvx --quiet --no-python-downloads --no-index --find-links /release "portway@$new" "$@"; }
