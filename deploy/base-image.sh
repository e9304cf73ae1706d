#!/usr/bin/env bash
# Makes a minimal Debian image from packages, without a registry of images.
#
#   deploy/base-image.sh NAME        requires root, mmdebstrap and podman
#
# The image has the certificate authorities of this machine, so that builds work behind its proxy.
set -euo pipefail

name=${1:?usage: base-image.sh NAME}
root=$(cd "$(dirname "$0")/.." && pwd)
archive=$root/target/image/base.tar
part=${archive%.tar}.part.tar
bundle=/etc/ssl/certs/ca-certificates.crt

for tool in mmdebstrap podman; do
    command -v "$tool" >/dev/null || { echo "base-image.sh: $tool is missing; apt-get install $tool" >&2; exit 1; }
done
if podman image exists "$name"; then
    exit 0
fi
mkdir -p "$(dirname "$archive")"
if [ ! -s "$archive" ]; then
    mmdebstrap --quiet --variant=minbase --include=ca-certificates \
        --customize-hook="copy-in $bundle $(dirname "$bundle")" \
        bookworm "$part"
    mv "$part" "$archive"
fi
podman import --quiet \
    --change "ENV SSL_CERT_FILE=$bundle" --change "ENV PIP_CERT=$bundle" --change "ENV NODE_EXTRA_CA_CERTS=$bundle" \
    "$archive" "$name"
