#!/bin/bash
# Runs every fuzz target for the given number of seconds (default 60): under libFuzzer where a nightly compiler and
# cargo-fuzz are installed, else the same entry points with the mutations of onionskin/tests/fuzz_short.rs. How often each has
# run since the code was changed stands in fuzz/runs.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
log=$(mktemp)
trap 'scripts/fuzz_count.py "$log"; rm -f "$log"' EXIT

if ! cargo +nightly --version >/dev/null 2>&1 || ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    echo "fuzz: no coverage guidance. For that: rustup toolchain install nightly && cargo install cargo-fuzz"
    ONIONSKIN_FUZZ_SECONDS=$seconds cargo test --locked --profile ci -p onionskin --test fuzz_short -- --nocapture 2>&1 | tee "$log"
    exit
fi

passed=0 failed=0
(cd fuzz && cargo +nightly run --release --quiet --bin seeds)
for target in fuzz/fuzz_targets/*.rs; do
    name=$(basename "$target" .rs)
    echo "==== $name" | tee -a "$log"
    if cargo +nightly fuzz run "$name" -- -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 2>&1 | tee -a "$log"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
