#!/bin/sh
# What accompanies the program in every package: share.sh TARGET BINARY DIR
# Manual pages, completions, licences.
set -eu
cd "$(dirname "$0")/.."
target=$1 binary=$2 dir=$3

rm -rf "$dir"
mkdir -p "$dir/man" "$dir/completions"
"$binary" man --dir "$dir/man"
"$binary" completions bash >"$dir/completions/portway.bash"
"$binary" completions zsh >"$dir/completions/_portway"
"$binary" completions fish >"$dir/completions/portway.fish"
cp LICENSE README.md CHANGELOG.md "$dir/"
python3 packaging/third_party.py "$target" >"$dir/THIRD-PARTY.txt"
