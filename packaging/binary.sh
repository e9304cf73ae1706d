#!/bin/sh
# Builds the program for TARGET so that it runs with an old glibc: binary.sh TARGET OUTPUT
# GLIBC is the oldest version it must run with.
set -eu
cd "$(dirname "$0")/.."
target=$1 output=$2

packaging/venv.sh
# A directory of its own: another linker makes other files.
PATH="$PWD/target/packaging/venv/bin:$PATH" "${CARGO:-cargo}" zigbuild --release --locked \
    --target "$target.$GLIBC" --target-dir target/packaging/cargo --bin portway
install -D "target/packaging/cargo/$target/release/portway" "$output"

eval "$(python3 packaging/facts.py "$target" "$output")"
# shellcheck disable=SC2154 # from facts.py
if [ "$(printf '%s\n' "$glibc" "$GLIBC" | sort -V | tail -n 1)" != "$GLIBC" ]; then
    echo "$output needs glibc $glibc, newer than $GLIBC" >&2
    exit 1
fi
