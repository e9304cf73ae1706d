#!/bin/sh
# A clean Debian as a tar file, made once: root.sh FILE [PACKAGE,...]
set -eu
file=$1 packages=${2:-}
if [ ! -e "$file" ]; then
    mkdir -p "$(dirname "$file")"
    mmdebstrap --quiet --variant=minbase ${packages:+--include="$packages"} "${SUITE:-bookworm}" "$file.part.tar"
    mv "$file.part.tar" "$file"
fi
