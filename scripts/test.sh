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

# Tests of a file that failed run once more, each alone: where many servers start side by side, a machine that stands
# still for seconds makes tests fail that go by time. One that passes then is named at the end of the run, with all that
# it said, as one to be mended; more than two in a run are a failure.
MOST_UNSTEADY=2

run_again() { # name, program; succeeds if all that failed passes
    local name=$1 program=$2 failed test
    mapfile -t failed < <(sed -n 's/^test \([^ ]*\) \.\.\. FAILED$/\1/p' "$outputs/$name" | sort -u)
    [ "${#failed[@]}" -ge 1 ] && [ "${#failed[@]}" -le "$MOST_UNSTEADY" ] || return 1
    for test in "${failed[@]}"; do
        (cd onionskin && timeout --kill-after=10 600 "$program" --exact "$test") >"$outputs/$name.again" 2>&1 &&
            grep -q '^test result: ok\. 1 passed' "$outputs/$name.again" || return 1
    done
    # what failed is not what decides any more
    sed -i 's/^\(test .* \.\.\. \)FAILED$/\1UNSTEADY/; s/^test result: FAILED/first result: FAILED/' "$outputs/$name"
    local passed
    passed=$(sed -n 's/^first result: FAILED\. \([0-9]*\) passed.*/\1/p' "$outputs/$name")
    printf 'UNSTEADY: %s\n' "${failed[@]/#/$name }" >>"$outputs/$name"
    echo "test result: ok. $((passed + ${#failed[@]})) passed; 0 failed; with those that passed when they ran again" \
        >>"$outputs/$name"
}

# A file's output is shown when it ends, in one piece. One that does not end has failed: the others go on, and what
# it has said so far tells where it stands. Long versions take their time.
run_file() { # name, program
    local name=$1 program limit=1500 result=0
    program=$(realpath "$2")
    [ -z "${ONIONSKIN_TEST_LONG:-}" ] || limit=0
    (cd onionskin && timeout --kill-after=10 "$limit" "$program") >"$outputs/$name" 2>&1 || result=$?
    if [ "$result" = 124 ]; then
        echo "test result: FAILED. 0 passed; 1 failed; no end within $limit s" >>"$outputs/$name"
    elif [ "$result" != 0 ] && run_again "$name" "$program"; then
        result=0
    fi
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
    export MOST_UNSTEADY
    export -f run_file run_again
    xargs -P "$FILES_AT_ONCE" -L 1 bash -c 'run_file "$@"' - <<<"$programs" || result=1
    if [ "$(cat "$outputs"/* | grep -c '^UNSTEADY: ')" -gt "$MOST_UNSTEADY" ]; then
        echo "more than $MOST_UNSTEADY tests passed only when they ran again"
        result=1
    fi
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
grep -hE '^(UNSTEADY|NOT COMPARED|SKIPPED: (valgrind|instructions|advisories|OpenBao)|hot paths take fewer)' "$log"
if [ ${#failures[@]} -gt 0 ]; then
    printf 'failed stage: %s\n' "${failures[@]}"
    # A stage can fail without a failing test: a compiler error, a lint.
    [ "$failed" -gt 0 ] || failed=${#failures[@]}
fi
echo "$passed passed, $failed failed"
[ ${#failures[@]} -eq 0 ] && [ "$failed" -eq 0 ]
