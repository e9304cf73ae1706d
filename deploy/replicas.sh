#!/usr/bin/env bash
# Starts three replicas of Portway on one database behind nginx, on loopback.
#
#   deploy/replicas.sh [PORT]        default 7420; Ctrl-C stops everything
#
# Requires a portway binary, nginx and PostgreSQL. Optional settings:
#   BIN                  binary                           (target/release/portway)
#   REPLICAS             number of replicas               (3)
#   SUPABASE_DB_URL      database                         (a temporary one)
#   PORTWAY_ADMIN_TOKEN  PORTWAY_SECRET                   (random)
#   PROJECT              directory of .mcp.json           (an empty directory)
#
# The replicas share the database (entries, bindings, servers), PORTWAY_SECRET (a session is valid
# on every replica) and PORTWAY_ADMIN_TOKEN. A server's request to a client during a call lives on
# the replica of the call, so nginx routes a session to the same replica while that replica is up.
set -euo pipefail

port=${1:-7420}
root=$(cd "$(dirname "$0")/.." && pwd)
bin=$(realpath "${BIN:-$root/target/release/portway}")
replicas=${REPLICAS:-3}
work=$(mktemp -d "${TMPDIR:-/tmp}/portway-replicas.XXXXXX")
chmod 755 "$work"
pids=()

random() { head -c 32 /dev/urandom | base64 | tr -d '+/=\n'; }

end() {
    trap - EXIT INT TERM
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
    if [ -f "$work/db/postmaster.pid" ]; then
        database "$postgres/pg_ctl" -D "$work/db" -m fast -w -t 20 stop >/dev/null 2>&1 || true
    fi
    rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

need() { echo "replicas.sh: $*" >&2; exit 1; }

# wait_for SECONDS WHAT COMMAND...: until the command succeeds.
wait_for() {
    local tries=$(($1 * 10)) what=$2
    shift 2
    for ((i = 0; i < tries; i++)); do
        if "$@" >/dev/null 2>&1; then return 0; fi
        sleep 0.1
    done
    tail -n 20 "$work"/[0-9]*/log "$work"/nginx.log >&2 2>/dev/null || true
    need "$what did not come up"
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# PostgreSQL refuses to run as root.
database() {
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=/tmp "$@"
    else
        "$@"
    fi
}

[ -x "$bin" ] || need "no binary at $bin; run: make build"
nginx=$(PATH=$PATH:/usr/sbin:/sbin command -v nginx) || need "nginx is missing; apt-get install nginx-light"

if [ -z "${SUPABASE_DB_URL:-}" ]; then
    postgres=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
    [ -n "$postgres" ] || need "PostgreSQL is missing; apt-get install postgresql, or set SUPABASE_DB_URL"
    db_port=$(free_port)
    mkdir "$work/db"
    [ "$(id -u)" != 0 ] || chown nobody:nogroup "$work/db"
    database "$postgres/initdb" -D "$work/db" -U portway --auth=trust -E UTF8 >"$work/initdb.log" 2>&1
    database "$postgres/pg_ctl" -D "$work/db" -w -t 30 -l "$work/db/log" \
        -o "-c listen_addresses=127.0.0.1 -c unix_socket_directories= -p $db_port" start >/dev/null
    SUPABASE_DB_URL=postgres://portway@127.0.0.1:$db_port/postgres
fi

export STORAGE_TYPE=supabase SUPABASE_DB_URL
export PORTWAY_ADMIN_TOKEN=${PORTWAY_ADMIN_TOKEN:-pwa_$(random)}
export PORTWAY_SECRET=${PORTWAY_SECRET:-$(random)}
export PORTWAY_ALLOWED_HOSTS=127.0.0.1:$port,localhost:$port

upstreams=
for ((n = 1; n <= replicas; n++)); do
    mkdir -p "$work/$n/project"
    "$bin" --listen 127.0.0.1:0 --project "${PROJECT:-$work/$n/project}" --data-dir "$work/$n/data" \
        >"$work/$n/out" 2>"$work/$n/log" &
    pids+=($!)
    wait_for 60 "replica $n" grep -q '^portway listening on ' "$work/$n/out"
    address=$(sed -n 's|^portway listening on http://||p' "$work/$n/out" | head -1)
    upstreams+="        server $address max_fails=1 fail_timeout=1s;"$'\n'
    echo "replica $n  http://$address  pid ${pids[-1]}"
done

cat >"$work/nginx.conf" <<CONF
worker_processes 1;
daemon off;
pid $work/nginx.pid;
error_log $work/nginx.log warn;
events { worker_connections 4096; }
http {
    access_log off;
    client_body_temp_path $work/body;
    proxy_temp_path $work/proxy;
    fastcgi_temp_path $work/fastcgi;
    uwsgi_temp_path $work/uwsgi;
    scgi_temp_path $work/scgi;
    # A request without a session can go to any replica.
    map \$http_mcp_session_id \$home { "" \$request_id; default \$http_mcp_session_id; }
    upstream portway {
        hash \$home consistent;
$upstreams        keepalive 64;
    }
    server {
        listen 127.0.0.1:$port;
        client_max_body_size 8m;
        location / {
            proxy_pass http://portway;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host \$http_host;
            # Streams are not buffered and can be idle for a long time.
            proxy_buffering off;
            proxy_request_buffering off;
            proxy_read_timeout 1h;
            # A request that may have been processed is never sent again.
            proxy_next_upstream error timeout;
        }
    }
}
CONF
"$nginx" -p "$work" -c "$work/nginx.conf" -e "$work/nginx.log" &
pids+=($!)
wait_for 20 nginx curl -sf -o /dev/null "http://127.0.0.1:$port/healthz"

echo "admin token  $PORTWAY_ADMIN_TOKEN"
echo "$replicas replicas of Portway on http://127.0.0.1:$port"
while :; do
    # nginx skips a replica that exits by itself; report it.
    wait -n || true
    for pid in "${pids[@]}"; do
        kill -0 "$pid" 2>/dev/null || { echo "process $pid has ended"; pids=("${pids[@]/$pid/}"); pids=(${pids[@]}); }
    done
    [ "${#pids[@]}" -gt 0 ] || exit 1
done
