#!/bin/sh
# The program with its manual and completions: tarball.sh TARGET BINARY SHARE DIST
# The same input gives the same bytes.
set -eu
target=$1 binary=$2 share=$3 dist=$4
eval "$(python3 "$(dirname "$0")/facts.py")"
# shellcheck disable=SC2154 # name and version come from facts.py
folder=$name-$version-$target

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/$folder"
cp -R "$share/." "$work/$folder/"
install -m 755 "$binary" "$work/$folder/portway"
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" \
    -cf - "$folder" | gzip -9n >"$dist/$folder.tar.gz"
