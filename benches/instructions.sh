#!/bin/sh
# Instructions per packet-hop of a short S1, against the newest entry of benches/instructions.txt.
# Counts do not depend on the machine's load, so that a slower commit shows in CI.
#
#   benches/instructions.sh [FILE]
#
# A rise above 5 % fails. Where it has a reason, append an entry with the new number and a note:
#   instructions_per_hop <n> # <yyyy-mm-dd> <rustc version>: <what has changed and why it is worth it>
# Exit codes: 0 within 5 %, 1 above, 2 the file or the run is not as expected, 3 Valgrind is missing.
cd "$(dirname "$0")/.." || exit 2
entries=${1:-benches/instructions.txt}

if ! command -v valgrind >/dev/null; then
    echo "benches/instructions.sh counts with Valgrind, which is not here: apt-get install valgrind" >&2
    exit 3
fi

form='^instructions_per_hop [0-9]+(\.[0-9]+)? # [0-9]{4}-[0-9]{2}-[0-9]{2} .*[[:alpha:]]'
if ! grep -q . "$entries" || grep -Evn "$form" "$entries"; then
    echo "every line of $entries must be: instructions_per_hop <n> # <yyyy-mm-dd> <note>" >&2
    exit 2
fi
expected=$(tail -n 1 "$entries" | cut -d ' ' -f 2)

cargo build --quiet --release --locked -p eastwest-sim --example s1 || exit 2
program=${CARGO_TARGET_DIR:-target}/release/examples/s1
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
if ! valgrind --tool=callgrind --callgrind-out-file="$scratch/profile" "$program" short \
    >"$scratch/output" 2>"$scratch/errors"; then
    cat "$scratch/output" "$scratch/errors" >&2
    exit 2
fi
instructions=$(awk '$1 == "totals:" { print $2 }' "$scratch/profile")
hops=$(awk '$1 == "hops" { print $2 }' "$scratch/output")

awk -v instructions="$instructions" -v hops="$hops" -v expected="$expected" 'BEGIN {
    if (!(instructions > 0 && hops > 0)) {
        print "no instructions or packet-hops counted" > "/dev/stderr"
        exit 2
    }
    measured = instructions / hops
    change = 100 * (measured / expected - 1)
    printf "short S1: %d instructions, %d packet-hops\n", instructions, hops
    printf "instructions_per_hop %.1f, committed %s: %+.1f %%\n", measured, expected, change
    if (change > 5) {
        print "more than 5 % above the newest entry; if that has a reason, append one with a note"
        print "0 passed, 1 failed"
        exit 1
    }
    if (change < -5)
        print "more than 5 % below: append an entry, so that the gain is kept"
    print "1 passed, 0 failed"
}'
