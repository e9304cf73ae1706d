#!/bin/sh
# Tries the service where systemd runs: in-service.sh OLD NEW
# Prints "STEP<tab>RESULT" for each step; the rest goes to stderr.
set -eu
kind=service old=$1 new=$2
# shellcheck source=packaging/test/steps.sh
. /test/steps.sh
where="--project /etc/portway --data-dir /var/lib/portway"
as_service() { runuser -u portway -- "$@"; }

began=$(date +%s%N)
apt-get install -qq -y /previous/portway_"$old"_*.deb
[ "$(systemctl is-active portway.socket portway.service | sort -u)" = active ] || fail "the service does not run"
# shellcheck disable=SC2086 # $where is some words
{
    as_service portway add $where demo -- /usr/bin/portway demo-server demo
    within 60 as_service portway call $where demo:add a=2 b=3
    report "first call" "$(($(date +%s%N) - began))"
    as_service portway entries create $where kept --tool demo:add --json >/tmp/entry.json
}
key=$(entry_key /tmp/entry.json)

# Calls, one after the other, until the upgrade is over.
touch /tmp/calling
(
    made=0 failed=0
    while [ -e /tmp/calling ]; do
        made=$((made + 1))
        call_with_key "$key" || failed=$((failed + 1))
    done
    echo "$made $failed" >/tmp/calls
) &
caller=$!
before=$(systemctl show -P MainPID portway)
apt-get install -qq -y /release/portway_"$new"_*.deb
after=$(systemctl show -P MainPID portway)
within 60 call_with_key "$key"
rm /tmp/calling
wait "$caller"
[ "$before" != "$after" ] || fail "the upgrade did not restart the service"
read -r made failed </tmp/calls
[ "$failed" = 0 ] || fail "$failed of $made calls failed during the upgrade"
report "upgrade" "entry key kept; $failed of $made calls during it failed"

kill -9 "$after"
within 60 call_with_key "$key"
report "kill -9" "systemd restarted it; the entry works"

dpkg --remove portway
if systemctl is-active portway.socket portway.service; then fail "the service still runs"; fi
[ -e /var/lib/portway/admin_token ] || fail "removing deleted the data"
dpkg --purge portway
if [ -e /var/lib/portway ] || [ -e /var/cache/portway ] || [ -e /etc/portway ]; then fail "purging left the data"; fi
report "uninstall" "nothing left but data; after purging, nothing"
