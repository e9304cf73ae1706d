#!/bin/sh
# A Debian package with the service: deb.sh TARGET BINARY SHARE DIST
set -eu
target=$1 binary=$2 share=$3 dist=$4
here=$(dirname "$0")
eval "$(python3 "$here/facts.py" "$target" "$binary")"

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
umask 022

doc=$root/usr/share/doc/portway
install -D -m 755 "$binary" "$root/usr/bin/portway"
for unit in portway.service portway.socket; do
    install -D -m 644 "$here/$unit" "$root/usr/lib/systemd/system/$unit"
done
# It can hold an admin token.
install -D -m 600 "$here/debian/environment" "$root/etc/portway/environment"
mkdir -p "$root/usr/share/man/man1"
for page in "$share"/man/*.1; do
    install -m 644 "$page" "$root/usr/share/man/man1/"
done
gzip -9n "$root"/usr/share/man/man1/*.1
install -D -m 644 "$share/completions/portway.bash" "$root/usr/share/bash-completion/completions/portway"
install -D -m 644 "$share/completions/_portway" "$root/usr/share/zsh/vendor-completions/_portway"
install -D -m 644 "$share/completions/portway.fish" "$root/usr/share/fish/vendor_completions.d/portway.fish"
install -D -m 644 "$here/debian/copyright" "$doc/copyright"
gzip -9n <"$share/CHANGELOG.md" >"$doc/changelog.gz"
gzip -9n <"$share/THIRD-PARTY.txt" >"$doc/THIRD-PARTY.txt.gz"

mkdir "$root/DEBIAN"
for script in postinst prerm postrm; do
    install -m 755 "$here/debian/$script" "$root/DEBIAN/$script"
done
echo /etc/portway/environment >"$root/DEBIAN/conffiles"
(cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
# A pre-release sorts before its release with a tilde.
# shellcheck disable=SC2154 # name, version, deb, … come from facts.py
debian_version=$(echo "$version" | sed 's/-/~/')
# The servers are programs of their own: npx and uvx start most of them.
# shellcheck disable=SC2154
cat >"$root/DEBIAN/control" <<CONTROL
Package: $name
Version: $debian_version
Architecture: $deb
Maintainer: $MAINTAINER
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Depends: $deb_depends, adduser, init-system-helpers (>= 1.52)
Recommends: ca-certificates
Suggests: npm, python3
Section: net
Priority: optional
${homepage:+Homepage: $homepage
}Description: gateway and supervisor for MCP servers
 $description
CONTROL
dpkg-deb --root-owner-group -Zxz --build "$root" "$dist/${name}_${debian_version}_$deb.deb" >/dev/null
