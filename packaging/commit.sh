# shellcheck shell=sh
# Sourced: the commit that a release is made from, and its moment for every file in it.
COMMIT=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export COMMIT SOURCE_DATE_EPOCH
