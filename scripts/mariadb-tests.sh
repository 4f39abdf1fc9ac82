#!/bin/bash
# Fetches MariaDB's own test files into target/mariadb-test, for onionskin/tests/mtr.rs.
#
# They are Debian's package mariadb-test-data, under the GPL: they are unpacked beside the build, read by the test, and are no part
# of this project. The version is that of the server which apt offers. Nothing is installed.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=target/mariadb-test
if [ -e "$folder/usr/share/mysql/mysql-test/main/select.test" ] || [ -e /usr/share/mysql/mysql-test/main/select.test ]; then
    exit 0
fi
command -v apt-get >/dev/null || {
    echo "mariadb-tests: this machine has no apt. Unpack mysql-test of MariaDB's source into $folder/usr/share/mysql/" >&2
    exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# apt's own download user may not reach it otherwise
chmod 755 "$work"
(cd "$work" && apt-get -q download mariadb-test-data 2>/dev/null) || {
    echo "mariadb-tests: apt-get download mariadb-test-data failed; is apt-get update needed?" >&2
    exit 1
}
mkdir -p "$folder"
dpkg-deb -x "$work"/mariadb-test-data_*.deb "$folder"
echo "mariadb-tests: $(find "$folder/usr/share/mysql/mysql-test/main" -name '*.test' | wc -l) files in $folder"
