#!/bin/sh
# Installs the tools of requirements.txt below target: venv.sh. Does nothing when they are there.
set -eu
cd "$(dirname "$0")/.."
venv=target/packaging/venv
if ! cmp -s packaging/requirements.txt "$venv/requirements.txt"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps -r packaging/requirements.txt
    cp packaging/requirements.txt "$venv/requirements.txt"
fi
