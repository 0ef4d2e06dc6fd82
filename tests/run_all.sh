#!/bin/sh
# The checks of the project, one after the other; called by `make test`, `make test-fast` and
# `make test-long` after the build, with the part as argument: fast, long, or nothing.
# Goes on after a failure, and ends with one line per step. What lacks a Debian tool is named, by
# pytest at its end or here; with EASTWEST_REQUIRE_TOOLS=1 it fails instead.
cd "$(dirname "$0")/.." || exit 1
BIN="$PWD/.venv/bin"
# Commands that the tests start read compiled Python.
unset PYTHONDONTWRITEBYTECODE
# The same interpreter as in the build, or cargo would compile PyO3 again.
export PYO3_PYTHON="$BIN/python"
report=""
failed=0

step() {
    name=$1
    shift
    printf '\n== %s\n' "$name"
    began=$(date +%s)
    if "$@"; then
        result=passed
    else
        result=FAILED
        failed=1
    fi
    report="$report  $result  $name, $(($(date +%s) - began)) s
"
}

# Two processes, each file in one of them: fixtures of a file are made once.
pytest_of() {
    "$BIN/python" -m pytest --numprocesses 2 --dist loadfile -m "$1"
}

# The bindings are tested from Python: as a test binary they would have to link libpython.
crates="--workspace --exclude eastwest-bindings --exclude eastwest-extension"

if [ "${1:-}" = long ]; then
    # All of them: make test leaves out those with generated input.
    # shellcheck disable=SC2086 # several words
    step "cargo test, all" cargo test --quiet $crates --locked --no-fail-fast
    step "pytest, long" pytest_of long
    if command -v valgrind >/dev/null || [ "${EASTWEST_REQUIRE_TOOLS:-}" = 1 ]; then
        step "instructions per hop" benches/instructions.sh
    else
        report="$report  not run instructions per hop: needs valgrind
"
    fi
    printf '\n%s' "$report"
    exit $failed
fi

step "rustfmt" cargo fmt --all --check
step "ruff check" "$BIN/ruff" check python tests benches tools
step "ruff format" "$BIN/ruff" format --check python tests benches tools
step "words" "$BIN/python" tools/words.py
if [ "${1:-}" = fast ]; then
    # shellcheck disable=SC2086 # several words
    step "cargo test of libraries" cargo test --quiet $crates --lib --locked --no-fail-fast
    step "pytest, fast" pytest_of "not slow and not long"
    printf '\n%s' "$report"
    exit $failed
fi

step "clippy" cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
# shellcheck disable=SC2086 # several words
step "cargo test" cargo test --quiet $crates --lib --test whole --test scenario_errors --locked \
    --no-fail-fast
step "mypy --strict" "$BIN/mypy"
step "pytest" pytest_of "not long"

printf '\n%s' "$report"
exit $failed
