#!/usr/bin/env bash
# Installs what the tests run against into tests/.tools. Does nothing when the pins
# have not changed since the last time.
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD
tools=$(cd .. && pwd)/.tools
mkdir -p "$tools"

missing=()
command -v node >/dev/null && command -v npm >/dev/null || missing+=(nodejs npm)
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v git >/dev/null || missing+=(git)
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3 python3-venv)
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || missing+=(postgresql)
command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ] || missing+=(pgbouncer)
command -v nginx >/dev/null || [ -x /usr/sbin/nginx ] || missing+=(nginx-light)
command -v openssl >/dev/null || missing+=(openssl)
command -v jq >/dev/null || missing+=(jq)
command -v systemd-analyze >/dev/null || missing+=(systemd)
# The build script of the Copilot SDK links it.
pkg-config --exists openssl 2>/dev/null || missing+=(pkg-config libssl-dev)
command -v chromium >/dev/null || missing+=(chromium)
fc-list 2>/dev/null | grep -qi microhei || ls /usr/share/fonts/truetype/wqy/wqy-microhei.ttc >/dev/null 2>&1 || missing+=(fonts-wqy-microhei)
if ((${#missing[@]})); then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}"
    else
        echo "install.sh: please install: ${missing[*]}" >&2
        exit 1
    fi
fi

# fresh PART PINS...: is PART installed from exactly these pins and programs?
fresh() {
    local part=$1
    shift
    sum=$({ cat "$@"; case $part in node | copilot) node --version ;; *) python3 --version ;; esac; } | sha256sum | cut -d' ' -f1)
    [ "$(cat "$tools/$part/.stamp" 2>/dev/null)" = "$sum" ]
}

if ! fresh node package.json package-lock.json; then
    rm -rf "$tools/node"
    mkdir "$tools/node"
    cp package.json package-lock.json "$tools/node/"
    # The conformance suite needs Node 22: an older system gets one beside it, as a package.
    omit=()
    [ "$(node -p 'parseInt(process.versions.node)')" -lt 22 ] || omit=(--omit=optional)
    (cd "$tools/node" && npm ci "${omit[@]}" --no-audit --no-fund --ignore-scripts --loglevel=error)
    modern=$(cd "$tools/node" && ls node_modules/node-linux-*/bin/node 2>/dev/null || command -v node)
    ln -sfn "$modern" "$tools/node/node-22"
    echo "$sum" >"$tools/node/.stamp"
fi
# So that the servers kept here find their packages.
ln -sfn ../.tools/node/node_modules "$here/node_modules"

# GitHub's Copilot SDK with its runtime, as the adapter's own package asks for it.
adapter=$(cd ../../adapters/copilot-ts && pwd)
if ! fresh copilot "$adapter/package-lock.json"; then
    rm -rf "$tools/copilot"
    mkdir "$tools/copilot"
    cp "$adapter/package.json" "$adapter/package-lock.json" "$tools/copilot/"
    (cd "$tools/copilot" && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error)
    echo "$sum" >"$tools/copilot/.stamp"
fi
[ -e "$adapter/node_modules" ] || ln -sfn ../../tests/.tools/copilot/node_modules "$adapter/node_modules"

for version in 1 2 schemathesis; do
    part=python-$version
    if ! fresh "$part" "requirements-$version.txt"; then
        rm -rf "${tools:?}/$part"
        python3 -m venv "$tools/$part"
        "$tools/$part/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "requirements-$version.txt"
        echo "$sum" >"$tools/$part/.stamp"
    fi
done
