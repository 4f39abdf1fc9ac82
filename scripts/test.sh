#!/bin/bash
# Runs all tests, every stage even if an earlier one failed, and ends with one line: "N passed, N failed".
# Called by `make test` and `make nightly`, which install what is needed first.
set -uo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
profile=(--locked --profile ci)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
stages_passed=0
failures=()

stage() { # name, command...
    local name=$1 start=$SECONDS
    shift
    echo "==== $name"
    if "$@" 2>&1 | tee -a "$log"; then
        stages_passed=$((stages_passed + 1))
    else
        failures+=("$name")
    fi
    echo "==== $name: $((SECONDS - start)) s"
}

# All stages select the whole workspace, and filter what runs: another selection of packages would
# be built once more, with other features. So no unit test file has the name of an integration test
# file.
names_of() { # test files...
    local file
    for file in "$@"; do
        file=${file##*/}
        echo "--test=${file%.rs}"
    done
}

# Most of a test's time goes to servers that start and wait.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$(nproc)}
# Integration test files at once, each with so many threads: at the end of one, most of its threads
# have nothing to do any more.
FILES_AT_ONCE=2

run_tests() {
    "$cargo" test "${profile[@]}" --workspace --no-fail-fast "$@"
}

unit_tests() {
    local tests result=0
    mapfile -t tests < <(names_of crates/*/tests/*.rs)
    run_tests --lib --bins "${tests[@]}" || result=1
    run_tests --doc || result=1
    return $result
}

# A file's output is shown when it ends, in one piece. One that does not end has failed: the others go on, and what
# it has said so far tells where it stands. Long versions take their time.
run_file() { # name, program
    local name=$1 program limit=1500 result=0
    program=$(realpath "$2")
    [ -z "${ONIONSKIN_TEST_LONG:-}" ] || limit=0
    (cd onionskin && timeout --kill-after=10 "$limit" "$program") >"$outputs/$name" 2>&1 || result=$?
    [ "$result" != 124 ] || echo "test result: FAILED. 0 passed; 1 failed; no end within $limit s" >>"$outputs/$name"
    [ "$result" = 0 ] || result=1
    {
        flock 9
        echo
        echo "==== tests/$name.rs: $SECONDS s"
        cat "$outputs/$name"
    } 9>"$outputs/lock"
    return $result
}

integration_tests() {
    local tests built programs result=0
    mapfile -t tests < <(names_of onionskin/tests/*.rs)
    built=$("$cargo" test "${profile[@]}" --workspace --no-run "${tests[@]}" 2>&1)
    programs=$(sed -n 's:^ *Executable tests/\(.*\)\.rs (\(.*\))$:\1 \2:p' <<<"$built")
    if [ "$(wc -l <<<"$programs")" -ne ${#tests[@]} ]; then
        echo "$built"
        return 1
    fi
    outputs=$(mktemp -d)
    export outputs
    export -f run_file
    xargs -P "$FILES_AT_ONCE" -L 1 bash -c 'run_file "$@"' - <<<"$programs" || result=1
    rm -r "$outputs"
    return $result
}

same_names() {
    local same
    same=$(comm -12 <(names_of onionskin/tests/*.rs | sort) <(names_of crates/*/tests/*.rs | sort -u))
    [ -z "$same" ] || { echo "unit and integration tests have the same names: $same" >&2; return 1; }
}

stage names same_names
stage format "$cargo" fmt --all --check
stage lints "$cargo" clippy "${profile[@]}" --workspace --all-targets -- -D warnings
stage advisories scripts/advisories.sh
stage build "$cargo" test "${profile[@]}" --workspace --no-run
stage "unit tests" unit_tests
stage "integration tests" integration_tests

# cargo's own totals, over all test programs.
read -r passed failed < <(awk '/^test result:/ { p += $4; f += $6 } END { print p + 0, f + 0 }' "$log")
echo
grep -E '^test .* \.\.\. FAILED$' "$log" | sort -u
if [ -e .servers/mysql.skipped ]; then
    echo "SKIPPED: every test on MySQL. MySQL could not be installed: $(cat .servers/mysql.skipped)"
fi
grep -hE '^(NOT COMPARED|SKIPPED: (valgrind|instructions|advisories|OpenBao)|hot paths take fewer)' "$log"
if [ ${#failures[@]} -gt 0 ]; then
    printf 'failed stage: %s\n' "${failures[@]}"
    # A stage can fail without a failing test: a compiler error, a lint.
    [ "$failed" -gt 0 ] || failed=${#failures[@]}
fi
echo "$passed passed, $failed failed"
[ ${#failures[@]} -eq 0 ] && [ "$failed" -eq 0 ]
