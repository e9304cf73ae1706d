#!/bin/sh
# A release from the commit that is checked out: release.sh DIST
# The variables are explained in release.mk.
set -eu
cd "$(dirname "$0")/.."
dist=$1
work=target/packaging

if [ -z "$DIRTY" ] && ! git diff --quiet HEAD --; then
    echo "release: there are uncommitted changes. Commit them, or set DIRTY=1 to try the packages." >&2
    exit 1
fi
. packaging/commit.sh
# Nobody shall take a trial for a release.
if [ -n "$BINARY" ]; then COMMIT="$COMMIT with a binary built before"; fi

rm -rf "$dist"
mkdir -p "$dist"
# Nothing in here is ever committed.
echo '*' >"$dist/.gitignore"

for target in $TARGETS; do
    binary=$work/bin/$target/portway
    if [ -n "$BINARY" ]; then
        install -D "$BINARY" "$binary"
    else
        packaging/binary.sh "$target" "$binary"
    fi
done
packaging/packages.sh "$dist"
for target in $TARGETS; do
    python3 packaging/sbom.py "$target" "$work/bin/$target/portway" >"$dist/portway-$target.cdx.json"
done
# shellcheck disable=SC2086 # a list of words
python3 packaging/formula.py "$dist" $TARGETS >"$dist/portway.rb"
python3 packaging/crates.py "$work/crates" "$dist/crates"
python3 packaging/index.py "$dist"
(cd "$dist" && sha256sum --quiet -c SHA256SUMS && cat SHA256SUMS)
