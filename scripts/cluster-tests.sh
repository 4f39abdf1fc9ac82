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
    case $cluster in
        galera) server=mariadb ;;
        *) server=mysql ;;
    esac
    echo "==== $cluster"
    ONIONSKIN_TEST_CLUSTER=$cluster "$cargo" test --locked --profile ci --workspace --no-fail-fast "${tests[@]}" -- "$server::" || result=1
done
exit $result
