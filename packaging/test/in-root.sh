#!/bin/sh
# Tries one kind of package in a clean root: in-root.sh KIND OLD NEW
# Prints "STEP<tab>RESULT" for each step; the rest goes to stderr.
set -eu
kind=$1 old=$2 new=$3
# shellcheck source=packaging/test/steps.sh
. /test/steps.sh

# The processes of this root that were not there at the beginning. Nothing is started to count them.
strangers() {
    found='' pids=''
    for stat in /proc/[0-9]*/stat; do
        read -r pid name state _ 2>/dev/null <"$stat" || continue
        case " $residents " in *" $pid "*) continue ;; esac
        [ "$pid" = $$ ] || [ "$state" = Z ] || found="$found $pid$name" pids="$pids $pid"
    done
}
alone() {
    strangers
    [ -z "$found" ]
}
# Files apart from caches and logs of the packagers, compiled Python, and data.
files() {
    find / -xdev \( -path /tmp -o -path /srv -o -path /proc -o -path /root/.npm -o -path /root/.local/state/portway \
        -o -path /var/cache -o -path /var/log -o -path /var/lib/apt -o -path /var/lib/dpkg -o -name __pycache__ \
        -o -path /var/lib/systemd/deb-systemd-helper-\* -o -name '*-' \) -prune -o -print | sort
}

project=/srv/kept
data=/srv/kept/data
where="--project /srv/kept"
program() { portway "$@"; }
as_service() { "$@"; }
# shellcheck disable=SC2086 # $where is two words
serve() { portway serve $where; }
purge() { :; }
# shellcheck source=/dev/null
. "/test/kinds/$kind.sh"

u1_first_call() {
    began=$(date +%s%N)
    install_version "$new"
    program demo /srv/demo >/tmp/demo.log 2>&1 &
    # The command makes the first call itself; its result stands in a line of its own.
    within 120 grep -qx 5 /tmp/demo.log
    report "first call" "$(($(date +%s%N) - began))"
    within 60 program call demo:add a=2 b=3 --project /srv/demo
    console_is_inside || fail "the console is not inside"
}

upgrade_check() {
    program upgrade --check --index /release/index.json || fail "the release is not the newest for itself"
    sed 's/"version": ".*"/"version": "99.0.0"/' /release/index.json >/tmp/index.json
    if program upgrade --check --index /tmp/index.json; then fail "a newer version is not noticed"; fi
}

nothing_outlives_kill() {
    strangers
    # Without the shell that started it.
    running=$(($(echo "$pids" | wc -w) - 1))
    [ "$running" -ge 3 ] || fail "the servers do not run: $found"
    kill -9 "$(cat /srv/demo/data/lock)"
    within 20 alone
    report "kill -9" "0 of $running processes left"
}

u2_upgrade_keeps_data_and_keys() {
    mkdir -p "$project"
    install_version "$old"
    [ "$(installed_version)" = "$old" ] || fail "installed is $(installed_version), not $old"
    serve >/tmp/old.log 2>&1 &
    within 60 test -e "$data/lock"
    # shellcheck disable=SC2086 # $where is some words
    {
        within 60 as_service portway add $where demo -- "$(command -v portway)" demo-server demo
        within 60 as_service portway call $where demo:add a=2 b=3
        as_service portway entries create $where kept --tool demo:add --json >/tmp/entry.json
    }
    key=$(entry_key /tmp/entry.json)
    token=$(cat "$data/admin_token")
    call_with_key "$key" || fail "the key of a new entry does not work"

    # Under the running program, as packagers do it.
    install_version "$new"
    [ "$(installed_version)" = "$new" ] || fail "installed is $(installed_version), not $new"
    call_with_key "$key" || fail "the running program does not survive the upgrade"
    kill "$(cat "$data/lock")"
    within 60 alone
    serve >/tmp/new.log 2>&1 &
    within 60 call_with_key "$key"
    [ "$(cat "$data/admin_token")" = "$token" ] || fail "the admin token is another one"
    report "upgrade" "entry key, admin token and servers kept"
    kill "$(cat "$data/lock")"
    within 60 alone
}

prepare
# The marks of data directories are data; the directory above them is the user's.
mkdir -p /root/.local/state
residents=
strangers
residents=$pids
files >/tmp/clean

u1_first_call
upgrade_check
nothing_outlives_kill
case $kind in npx | uvx) exit 0 ;; esac
uninstall
[ -e /srv/demo/data/admin_token ] || fail "the data is gone"
purge
files | diff /tmp/clean - || fail "files are left"
u2_upgrade_keeps_data_and_keys
uninstall
[ -e "$data/admin_token" ] || fail "the data is gone"
purge
files | diff /tmp/clean - || fail "files are left"
report "uninstall" "nothing left but data"
