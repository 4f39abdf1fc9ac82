#!/bin/bash
# Fetches MySQL's own test files into target/mysql-test, for onionskin/tests/mtr.rs.
#
# They are Debian's package mysql-testsuite, under the GPL: they are unpacked beside the build, read by the test, and are no part
# of this project. The package is Debian sid's, as the server in .servers/mysql is. apt has lists of its own for it, so that nothing
# of the system's is changed, and verifies what it fetches. Nothing is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/mirrors.sh
. scripts/mirrors.sh

folder=$PWD/target/mysql-test
if [ -e "$folder/.complete" ]; then
    exit 0
fi
if [ ! -e .servers/mysql/.complete ]; then
    echo "mysql-tests: MySQL is not there; without it, the test says skipped" >&2
    exit 0
fi
command -v apt-get >/dev/null || {
    echo "mysql-tests: this machine has no apt. Unpack mysql-test of MySQL's source into $folder/usr/lib/ and touch $folder/.complete" >&2
    exit 1
}
new=$folder.new
rm -rf "$new"
mkdir -p "$new/lists/partial" "$new/archives/partial" "$new/content"
mirrors | sed "s,.*,deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] & sid main," >"$new/sources.list"
apt=(apt-get -q -o "Dir::Etc::SourceList=$new/sources.list" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$new/lists"
    -o "Dir::Cache=$new" -o APT::Sandbox::User=root)
echo "mysql-tests: fetching mysql-testsuite from Debian sid (340 MB)"
if ! (cd "$new" && "${apt[@]}" update && timeout 1800 "${apt[@]}" download mysql-testsuite) >"$folder.log" 2>&1; then
    echo "mysql-tests: mysql-testsuite could not be fetched: $(tail -n 1 "$folder.log"); see $folder.log" >&2
    exit 1
fi
files=./usr/lib/mysql-test
dpkg-deb --fsys-tarfile "$new"/mysql-testsuite_*.deb |
    tar -C "$new/content" --no-same-owner -xf - $files/t $files/include $files/std_data
rm -rf "$folder"
mv "$new/content" "$folder"
rm -rf "$new"
touch "$folder/.complete"
echo "mysql-tests: $(find "$folder/$files/t" -name '*.test' | wc -l) files in $folder"
