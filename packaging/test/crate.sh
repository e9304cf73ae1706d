#!/bin/sh
# Installs the program from its crates without npm, and asks it for its console: crate.sh DIST WORK
# Prints "STEP<tab>RESULT".
set -eu
dist=$1 work=$2
# Outside the tree: below it, cargo takes a crate for a member of the workspace.
crates=$(mktemp -d)
trap 'rm -rf "$crates"' EXIT
mkdir -p "$crates/sources" "$crates/project"
for archive in "$dist"/crates/*.crate; do
    tar -xzf "$archive" -C "$crates/sources"
done

# The crates are in no registry yet: cargo takes them from here.
set --
for folder in "$crates"/sources/portway-[a-z]*; do
    crate=$(basename "$folder" | sed 's/-[0-9].*//')
    set -- "$@" --config "patch.crates-io.$crate.path='$folder'"
done
# `soak` is `release` without the minutes of whole-program optimisation; the console is inside in both.
mkdir "$crates/without"
for tool in npm node; do
    printf '#!/bin/sh\necho "%s was called" >&2\nexit 1\n' "$tool" >"$crates/without/$tool"
    chmod +x "$crates/without/$tool"
done
PATH="$crates/without:$PATH" "${CARGO:-cargo}" install --quiet --offline --profile soak --target-dir "$work/crate-target" \
    --path "$(echo "$crates"/sources/portway-[0-9]*)" --root "$crates/root" "$@" >&2
rm -rf "$crates/sources"

"$crates/root/bin/portway" serve --listen 127.0.0.1:0 --project "$crates/project" >"$crates/out" 2>"$crates/log" &
pid=$!
trap 'kill $pid; rm -rf "$crates"' EXIT
until address=$(sed -n 's/^portway listening on //p' "$crates/out") && [ -n "$address" ]; do
    kill -0 "$pid"
    sleep 0.1
done
python3 - "$address" <<'PYTHON'
import sys, urllib.request
health = urllib.request.urlopen(sys.argv[1] + "/healthz").read()
sys.exit(0 if b'"console":"embedded"' in health else f"no console in the crate: {health}")
PYTHON
printf 'install\tcargo install without npm, console inside\n'
