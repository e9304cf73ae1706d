#!/bin/sh
# The Debian package under a systemd of its own: service.sh DIST WORK OLD NEW
# Prints "STEP<tab>RESULT" for each step.
set -eu
dist=$1 work=$2 old=$3 new=$4
here=$(dirname "$0")
root=$work/root
"$here/root.sh" "$work/roots/systemd.tar" systemd,dbus
rm -rf "$root"
mkdir -p "$root"
tar -xf "$work/roots/systemd.tar" -C "$root"

# systemd ends with this unit, and with it everything in the root.
cat >"$root/etc/systemd/system/try.service" <<UNIT
[Unit]
SuccessAction=exit
FailureAction=exit
[Service]
Type=oneshot
TimeoutStartSec=300
Environment=HOME=/root DEBIAN_FRONTEND=noninteractive
ExecStart=/bin/sh /test/in-service.sh $old $new
StandardOutput=file:/steps
StandardError=file:/log
UNIT
MOUNTS="$dist:/release $work/previous:/previous $(realpath "$here"):/test" BOOT=1 timeout 400 \
    "$here/enter.sh" "$root" /lib/systemd/systemd --unit=try.service >"$work/service.log" 2>&1 || true
if ! grep -q '^uninstall' "$root/steps"; then
    cat "$work/service.log" "$root/log" "$root/steps" >&2
    exit 1
fi
cat "$root/steps"
