# shellcheck shell=sh disable=SC2154 # kind is assigned by who sources it
# Sourced: how a step is reported, awaited and called. $kind names what is tried.
exec 3>&1 1>&2

report() { printf '%s\t%s\n' "$1" "$2" >&3; }
fail() {
    echo "$kind: $*" >&2
    tail -n 30 /tmp/*.log >&2
    exit 1
}
# within SECONDS COMMAND...: waits until the command succeeds.
within() {
    deadline=$(($(date +%s) + $1))
    shift
    until "$@" >/tmp/within.log 2>&1; do
        [ "$(date +%s)" -lt "$deadline" ] || fail "not in time: $*"
        sleep 0.05
    done
}

# A call over HTTP with nothing but a key, as a client makes it.
call_with_key() {
    bash -c 'body="{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"add\",\"arguments\":{\"a\":2,\"b\":3}}}"
        exec 5<>/dev/tcp/127.0.0.1/7420
        printf "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:7420\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s" "$1" "${#body}" "$body" >&5
        cat <&5' - "$1" | grep -q '"text":"5"'
}
console_is_inside() {
    bash -c 'exec 5<>/dev/tcp/127.0.0.1/7420
        printf "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:7420\r\nConnection: close\r\n\r\n" >&5
        cat <&5' | grep -q '"console":"embedded"'
}

entry_key() { sed -n 's/.*"api_key": *"\([^"]*\)".*/\1/p' "$1"; }
