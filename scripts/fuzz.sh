#!/bin/bash
# Runs every fuzz target for the given number of seconds (default 60): under libFuzzer where a nightly compiler and
# cargo-fuzz are installed, else the same entry points with the mutations of onionskin/tests/fuzz_short.rs.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}

if ! cargo +nightly --version >/dev/null 2>&1 || ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    echo "fuzz: no coverage guidance. For that: rustup toolchain install nightly && cargo install cargo-fuzz"
    ONIONSKIN_FUZZ_SECONDS=$seconds cargo test --locked --profile ci -p onionskin --test fuzz_short -- --nocapture
    exit
fi

passed=0 failed=0
cd fuzz
cargo +nightly run --release --quiet --bin seeds
for target in fuzz_targets/*.rs; do
    name=$(basename "$target" .rs)
    echo "==== $name"
    if (cd .. && cargo +nightly fuzz run "$name" -- -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096); then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
