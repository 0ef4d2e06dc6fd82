#!/usr/bin/env bash
# Installs a wheel or source distribution into an empty environment, away from the sources, and
# runs what a user would first: try_package.sh PACKAGE [FILE]; the digest of the run goes to FILE.
set -euo pipefail
package=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
digest=${2:+$(cd "$(dirname "$2")" && pwd)/$(basename "$2")}
away=$(mktemp -d)
trap 'rm -rf "$away"' EXIT
cd "$away"
"${PYTHON:-python3}" -m venv env
env/bin/python -m pip install --quiet --disable-pip-version-check "$package"

env/bin/python - <<'PY'
import pathlib
import sys

import eastwest

place = pathlib.Path(eastwest.__file__).resolve()
assert place.is_relative_to(pathlib.Path(sys.prefix).resolve()), place
PY
env/bin/eastwest version
env/bin/eastwest run first --out flows --json > flows.json
env/bin/eastwest run demo --set workload.hadoop.trace_to="2 min" --out jobs
env/bin/eastwest report flows jobs
env/bin/python -c 'import json; print(json.load(open("flows.json"))["digest"])' > digest.txt
cat digest.txt
if [ -n "$digest" ]; then cp digest.txt "$digest"; fi
