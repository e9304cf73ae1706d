# shellcheck shell=sh
# Sourced: the commit that a release is made from, and its moment for every file in it.
COMMIT=$(git describe --always --dirty --abbrev=40 --exclude="*")
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export COMMIT SOURCE_DATE_EPOCH
