#!/bin/bash
# Builds a Debian package of what is checked out: target/package/onionskin_VERSION_ARCHITECTURE.deb
# ONIONSKIN_PROGRAM: a program that is built already, instead of a release build.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
say() { echo "package: $*"; }
for tool in dpkg-deb dpkg-shlibdeps; do
    command -v "$tool" >/dev/null || { say "$tool is missing: apt-get install dpkg-dev" >&2; exit 1; }
done

program=${ONIONSKIN_PROGRAM:-}
if [ -z "$program" ]; then
    "$cargo" build --release --locked -p onionskin
    program=target/release/onionskin
fi
program=$(realpath "$program")

out=target/package
root=$out/root
rm -rf "$out"
mkdir -p "$root/DEBIAN"
put() { # mode, from, to
    install -D -m "$1" "$2" "$root/$3"
}

put 0755 "$program" usr/bin/onionskin
# What remains is enough for the names in a backtrace.
strip --strip-debug "$root/usr/bin/onionskin"
put 0644 packaging/onionskin.service usr/lib/systemd/system/onionskin.service
put 0644 LICENSE usr/share/doc/onionskin/copyright
put 0644 README.md usr/share/doc/onionskin/README.md
put 0644 CHANGELOG.md usr/share/doc/onionskin/changelog
gzip -9n "$root/usr/share/doc/onionskin/changelog"

man=$root/usr/share/man/man1
mkdir -p "$man"
"$program" man "$man"
gzip -9n "$man"/*
completion() { # shell, file
    mkdir -p "$(dirname "$root/$2")"
    "$program" completions "$1" >"$root/$2"
}
completion bash usr/share/bash-completion/completions/onionskin
completion zsh usr/share/zsh/vendor-completions/_onionskin
completion fish usr/share/fish/vendor_completions.d/onionskin.fish

# Debian's own tool looks up which packages the libraries of the program are from.
mkdir -p "$out/build/debian"
echo "Source: onionskin" >"$out/build/debian/control"
depends=$(cd "$out/build" && dpkg-shlibdeps -O "$OLDPWD/$root/usr/bin/onionskin" | sed -n 's/^shlibs:Depends=//p')
[ -n "$depends" ] || { say "dpkg-shlibdeps found no libraries" >&2; exit 1; }
version=$("$program" --version | awk '{ print $2 }')-1
architecture=$(dpkg --print-architecture)
size=$(du -sk --exclude=DEBIAN "$root" | cut -f1)
sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$architecture/" -e "s/@DEPENDS@/$depends/" -e "s/@SIZE@/$size/" \
    packaging/debian/control.in >"$root/DEBIAN/control"
for script in postinst prerm postrm; do
    install -m 0755 "packaging/debian/$script" "$root/DEBIAN/$script"
done

find "$root" -type d -exec chmod 0755 {} +
dpkg-deb --root-owner-group --build "$root" "$out/onionskin_${version}_$architecture.deb" >/dev/null
cp packaging/Containerfile "$out/"
rm -r "$root" "$out/build"
say "$(ls "$out"/*.deb)"
