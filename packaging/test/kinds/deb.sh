# shellcheck shell=sh disable=SC2034,SC2154 # variables shared with in-root.sh
# The Debian package. There is no systemd in the root: the command of the unit
# is run as the account of the unit.
prepare() { :; }

install_version() {
    if [ "$1" = "$new" ]; then from=/release; else from=/previous; fi
    apt-get install -qq -y "$from"/portway_"$1"_*.deb
    setting="RUST_LOG=info,portway=info"
    # A setting of the administrator, which an upgrade keeps.
    if [ "$1" = "$old" ]; then
        echo "$setting" >>/etc/portway/environment
    elif [ -e "$data/admin_token" ]; then
        grep -qx "$setting" /etc/portway/environment || fail "the upgrade overwrote the settings"
    fi
}

installed_version() { dpkg-query -W -f '${Version}' portway; }

unit=/usr/lib/systemd/system/portway.service
project=/etc/portway
data=/var/lib/portway
where="--project /etc/portway --data-dir /var/lib/portway"

as_service() {
    home=$(sed -n 's/^Environment=HOME=//p' "$unit")
    runuser -u "$(sed -n 's/^User=//p' "$unit")" -- env HOME="$home" "$@"
}

serve() {
    # What systemd makes before it starts the program.
    cache=$(sed -n 's/^CacheDirectory=//p' "$unit")
    [ -z "$cache" ] || install -d -o portway -g portway -m 0700 "/var/cache/$cache"
    # shellcheck disable=SC2046 # words of a command
    as_service $(sed -n 's/^ExecStart=//p' "$unit")
}

uninstall() {
    dpkg --remove portway
    files | diff /tmp/clean - | grep '^[<>]' | grep -v ' /etc/portway\| /var/lib/portway\| /etc/systemd/system/' &&
        fail "files are left after removing"
    return 0
}

purge() {
    dpkg --purge portway
    if getent passwd portway; then fail "the account is left"; fi
}
