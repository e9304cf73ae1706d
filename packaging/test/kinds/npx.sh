# shellcheck shell=sh disable=SC2154 # new is assigned by in-root.sh
# `npx portway` installs and starts in one: there is nothing to upgrade or remove but npm's cache.
# shellcheck source=packaging/test/kinds/npm.sh
. /test/kinds/npm.sh

install_version() { :; }

program() { npx --yes "portway@$new" "$@"; }
