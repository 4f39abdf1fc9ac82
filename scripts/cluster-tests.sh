#!/bin/bash
# Tests of statements whose servers are nodes of clusters of two: what clients hear is what they hear before a plain server,
# and in the end all nodes have the same tables, cell by cell. Called by `make cluster-tests`; the clusters are its arguments.
set -uo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
clusters=("$@")
[ ${#clusters[@]} -gt 0 ] || clusters=(galera group multi-primary)
files=(row_updates transactions upsert_forms scratch_writes scratch_upserts types present definitions differential)
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$(nproc)}

tests=()
for file in "${files[@]}"; do
    tests+=("--test=$file")
done
result=0
for cluster in "${clusters[@]}"; do
    skipped=()
    case $cluster in
        galera) server=mariadb ;;
        group) server=mysql ;;
        multi-primary)
            server=mysql
            # without savepoints, what fails in a transaction behind a first change is 1213
            skipped=(--skip=rows_are_met_as_on_a_plain_server --skip=settings_and_failures)
            ;;
        *) echo "no cluster: $cluster" >&2; exit 2 ;;
    esac
    echo "==== $cluster"
    ONIONSKIN_TEST_CLUSTER=$cluster "$cargo" test --locked --profile ci --workspace --no-fail-fast "${tests[@]}" -- \
        "$server::" "${skipped[@]}" || result=1
done
exit $result
