#!/bin/sh
# Tries each package of a release in a clean root: run.sh DIST
# KINDS: those to try. Writes the table of what was tried to packaging/TRIED.md.
set -eu
cd "$(dirname "$0")/../.."
dist=$(realpath "$1")
work=$PWD/target/packaging
old=0.0.1
. packaging/commit.sh
eval "$(python3 packaging/facts.py)"
# shellcheck disable=SC2154 # from facts.py
new=$version

[ "$(id -u)" = 0 ] || { echo "test-release: needs root, to make roots" >&2; exit 1; }
for tool in mmdebstrap unshare pivot_root ip; do
    command -v "$tool" >/dev/null || { echo "test-release: install $tool" >&2; exit 1; }
done
(cd "$dist" && sha256sum --quiet -c SHA256SUMS)

packaging/venv.sh

# No release before this one can be had here: the same program under a lower number.
rm -rf "$work/previous"
mkdir -p "$work/previous"
PACKAGE_VERSION=$old packaging/packages.sh "$work/previous"

results=$work/results
: >"$results"
failed=
# recorded KIND COMMAND...: keeps what the command reports, or shows what it logged.
recorded() {
    kind=$1
    shift
    echo "== $kind"
    if ! "$@" >"$work/steps" 2>"$work/$kind.log"; then
        tail -n 60 "$work/$kind.log" "$work/steps" >&2
        failed="$failed $kind"
        return
    fi
    sed "s/^/$kind\t/" "$work/steps" | tee -a "$results"
}

try_in_root() {
    root=$work/root
    rm -rf "$root"
    mkdir -p "$root"
    mounts="$dist:/release $work/previous:/previous $PWD/packaging/test:/test"
    image=plain packages=''
    case $1 in
    # This machine's Node: that of Debian brings three hundred packages.
    npm | npx)
        npm=$(dirname "$(dirname "$(realpath "$(command -v npm)")")")
        mounts="$mounts $(command -v node):/usr/bin/node $npm:/usr/lib/node_modules/npm"
        ;;
    wheel) image=python packages=python3-venv ;;
    uvx)
        image=python packages=python3-venv
        mounts="$mounts $work/venv/bin/uv:/usr/local/bin/uv $work/venv/bin/uvx:/usr/local/bin/uvx"
        ;;
    esac
    packaging/test/root.sh "$work/roots/$image.tar" "$packages"
    tar -xf "$work/roots/$image.tar" -C "$root"
    MOUNTS=$mounts packaging/test/enter.sh "$root" sh /test/in-root.sh "$1" "$old" "$new"
}

for kind in ${KINDS:-tarball deb npm npx wheel uvx service crate}; do
    case $kind in
    service) recorded service packaging/test/service.sh "$dist" "$work" "$old" "$new" ;;
    crate) recorded crate packaging/test/crate.sh "$dist" "$work" ;;
    *) recorded "$kind" try_in_root "$kind" ;;
    esac
done
rm -rf "$work/root"
if [ -n "$failed" ]; then
    echo "test-release: failed:$failed" >&2
    exit 1
fi
python3 packaging/test/files.py "$dist" >>"$results"
python3 packaging/test/table.py "$results" "$dist" >"$work/TRIED.md"
cat "$work/TRIED.md"
# A table of some of them is no table of the release.
if [ -z "${KINDS:-}" ]; then cp "$work/TRIED.md" packaging/TRIED.md; fi
