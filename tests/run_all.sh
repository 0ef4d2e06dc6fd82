#!/bin/sh
# Every check of the project, one after the other; called by `make test` after the build.
# Goes on after a failure, and ends with one line per step. What lacks a Debian tool is named, by
# pytest at its end or here; with EASTWEST_REQUIRE_TOOLS=1 it fails instead.
cd "$(dirname "$0")/.." || exit 1
BIN="$PWD/.venv/bin"
# The same interpreter as in the build, or cargo would compile PyO3 again.
export PYO3_PYTHON="$BIN/python"
report=""
failed=0

step() {
    name=$1
    shift
    printf '\n== %s\n' "$name"
    if "$@"; then
        report="$report  passed  $name
"
    else
        report="$report  FAILED  $name
"
        failed=1
    fi
}

step "rustfmt" cargo fmt --all --check
step "clippy" cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
# The bindings are tested from Python: as a test binary they would have to link libpython.
step "cargo test" cargo test --quiet --workspace --exclude eastwest-bindings \
    --exclude eastwest-extension --locked --no-fail-fast
if command -v valgrind >/dev/null || [ "${EASTWEST_REQUIRE_TOOLS:-}" = 1 ]; then
    step "instructions per hop" benches/instructions.sh
else
    report="$report  not run instructions per hop: needs valgrind
"
fi
step "ruff check" "$BIN/ruff" check python tests benches tools
step "ruff format" "$BIN/ruff" format --check python tests benches tools
step "words" "$BIN/python" tools/words.py
step "mypy --strict" "$BIN/mypy"
# Two at a time, each file by one process: fixtures of a file are made once.
step "pytest" "$BIN/python" -m pytest --numprocesses 2 --dist loadfile

printf '\n%s' "$report"
exit $failed
