#!/bin/sh
# The packages of the binaries that are built: packages.sh DIST
set -eu
cd "$(dirname "$0")/.."
dist=$1
work=target/packaging

binaries=
for target in $TARGETS; do
    binary=$work/bin/$target/portway
    share=$work/share/$target
    # The first target is that of this machine: its program prints the manual for all.
    first=${first:-$binary}
    packaging/share.sh "$target" "$first" "$share"
    packaging/tarball.sh "$target" "$binary" "$share" "$dist"
    packaging/deb.sh "$target" "$binary" "$share" "$dist"
    python3 packaging/wheel.py "$target" "$binary" "$share" "$dist"
    binaries="$binaries $target=$binary"
done
# shellcheck disable=SC2086 # a list of words
python3 packaging/npm.py "$share" "$dist" $binaries
