#!/usr/bin/env bash
# Installs a wheel or source distribution into an empty environment, away from the sources, and runs
# the first commands of a user there, without Rust: try_package.sh PACKAGE [FILE]. The digest of a
# run goes to FILE. Prints the wall time of each step.
set -euo pipefail
package=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
digest=${2:+$(cd "$(dirname "$2")" && pwd)/$(basename "$2")}
guide=$(cd "$(dirname "$0")/../docs/guide" && pwd)/own-mechanism.md
away=$(mktemp -d)
trap 'rm -rf "$away"' EXIT
cd "$away"

step() {
    local from=$SECONDS
    printf '\n== %s\n' "$*"
    "$@"
    printf '== %s s\n' $((SECONDS - from))
}

# Programs of Rust that fail and leave a trace: they stand before those of this machine.
mkdir no-rust
for program in cargo rustc; do
    printf '#!/bin/sh\necho "%s" >> "%s/rust-called"\nexit 127\n' $program "$away" > no-rust/$program
    chmod +x no-rust/$program
done
without_rust=$away/no-rust:$PATH
case $package in *.whl) PATH=$without_rust ;; esac

"${PYTHON:-python3}" -m venv env
step env/bin/python -m pip install --quiet --disable-pip-version-check "$package"
PATH=$without_rust
rm -f rust-called  # pip asks rustc for its version, to tell it to the index

env/bin/python - <<'PY'
import pathlib
import sys

import eastwest

place = pathlib.Path(eastwest.__file__).resolve()
assert place.is_relative_to(pathlib.Path(sys.prefix).resolve()), place
PY
# A search without [optimize] (Optuna): all points of a small space are measured.
cat > space.toml <<'TOML'
optimize = 1
name = "small"
scenario = "first"

[[goal]]
minimise = "flows.fct_us.mean"

[[axis]]
path = "fabric.queue.limit"
values = ["25 packets", "100 packets", "400 packets"]

[search]
trials = 10

[[stage]]
name = "one seed"
seeds = 1
TOML
awk '/^```/ { inside = /^```python/ && !seen; if (inside) { seen = 1; next } } inside' \
    "$guide" > mechanism.py

env/bin/eastwest version
env/bin/eastwest run first --out flows --json > flows.json
step env/bin/eastwest run demo --set workload.hadoop.trace_to="2 min" --out jobs
step env/bin/eastwest report flows jobs
step env/bin/eastwest sweep buffers --seeds 2 --out sweep
step env/bin/eastwest report sweep
step env/bin/python mechanism.py
step env/bin/eastwest claims incast/T1 --quick
step env/bin/eastwest optimize space.toml --out search
# Bundles of a run, a sweep and a shipped study, opened in an empty folder.
step env/bin/eastwest bundle flows
step env/bin/eastwest bundle sweep
step env/bin/eastwest bundle incast --only incast/T1 --quick --out study.zip
mkdir empty
for bundle in flows-bundle.zip sweep-bundle.zip study.zip; do
    mv $bundle empty/
    (
        cd empty
        step ../env/bin/eastwest bundle verify $bundle
        step ../env/bin/eastwest bundle rerun $bundle --quick
    )
done
if [ "$(ls empty)" != "$(printf '%s\n' flows-bundle.zip study.zip sweep-bundle.zip)" ]; then
    echo "bundles have written files beside themselves:" empty/*
    exit 1
fi
if [ -e rust-called ]; then
    echo "called without need:" $(sort -u rust-called)
    exit 1
fi
env/bin/python -c 'import json; print(json.load(open("flows.json"))["digest"])' > digest.txt
cat digest.txt
if [ -n "$digest" ]; then cp digest.txt "$digest"; fi
