#!/bin/bash
# Known faults of the crates that Onionskin is built from: `cargo deny check advisories`, where that is installed and its database
# can be reached. Says so where not, and does not fail then.
set -uo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}

if ! "$cargo" deny --version >/dev/null 2>&1; then
    echo "SKIPPED: advisories: cargo-deny is not installed (cargo install cargo-deny)"
    exit 0
fi
if ! said=$("$cargo" deny fetch db 2>&1); then
    echo "SKIPPED: advisories: their database cannot be reached: $(echo "$said" | tail -1)"
    exit 0
fi
exec "$cargo" deny check advisories
