#!/bin/sh
# Instructions per packet-hop of short runs, against the newest entry of each in benches/instructions.txt.
# Counts do not depend on the machine's load, so that a slower commit shows in CI.
# Two further counts: S1x10-8-parts divides S1x10 into eight parts, which one thread simulates in turn,
# and S1x10-misses counts cache lines that a core with 32 KB and 512 KB of caches fetches, not instructions.
#
#   benches/instructions.sh [-l PERCENT] [-f FILE] [CASE...]
#
# A rise above PERCENT (default: 5) in any case fails. Where it has a reason, append an entry with the
# new number and a note:
#   <case> <number per hop> # <yyyy-mm-dd> <rustc version>: <what has changed and why it is worth it>
# Exit codes: 0 within the limit, 1 above, 2 the file or a run is not as expected, 3 Valgrind is missing.
cd "$(dirname "$0")/.." || exit 2
entries=benches/instructions.txt
limit=5
while getopts l:f: option; do
    case $option in
        l) limit=$OPTARG ;;
        f) entries=$OPTARG ;;
        *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))

if ! command -v valgrind >/dev/null; then
    echo "benches/instructions.sh counts with Valgrind, which is not here: apt-get install valgrind" >&2
    exit 3
fi

form='^[A-Za-z0-9+-]+ [0-9]+(\.[0-9]+)? # [0-9]{4}-[0-9]{2}-[0-9]{2} .*[[:alpha:]]'
if ! grep -q . "$entries" || grep -Evn "$form" "$entries"; then
    echo "every line of $entries must be: <case> <n> # <yyyy-mm-dd> <note>" >&2
    exit 2
fi

cargo build --quiet --release --locked -p eastwest-sim --example s1 --example modes --example parts || exit 2
programs=${CARGO_TARGET_DIR:-target}/release/examples
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT

# The trace of the ring: an allreduce of 2 MiB between 64 ranks.
cp benches/roce_ring.toml "$scratch/ring.toml" && mkdir "$scratch/ring" || exit 2
for rank in $(seq 0 63); do
    printf '%d init\n%d allreduce 2097152 0 6\n%d finalize\n' "$rank" "$rank" "$rank" \
        >"$scratch/ring/rank-$rank.txt"
done

# Runs the program of a case.
run() {
    case $1 in
        S1) count s1 short ;;
        S1x10) count s1 short x10 ;;
        S1x10-8-parts)
            count parts python/eastwest/scenarios/s1x10.toml 8 'workload.bulk.bytes=40 KB' &&
                ! grep 'one thread, since' "$own/output" >&2 || return 2
            ;;
        S1x10-misses) count s1 short x10 ;;
        S1-linux) count modes python/eastwest/scenarios/s1-linux.toml packet 'workload.bulk.bytes=200 KB' ;;
        PFC+QCN) count s1 short pfc qcn ;;
        RED) count s1 short red ;;
        CoDel) count s1 short codel ;;
        FQ-CoDel) count s1 short fq-codel ;;
        step-marking) count s1 short step ;;
        RoCE-ring) count modes "$scratch/ring.toml" packet ;;
        *) echo "no such case: $1" >&2 && return 2 ;;
    esac
}

# The parts are simulated in turn, whatever the clock says.
export PACE=alone

count() {
    program=$programs/$1
    shift
    # shellcheck disable=SC2086 # several words
    valgrind --tool=callgrind $caches --callgrind-out-file="$own/profile" "$program" "$@" \
        >"$own/output" 2>"$own/errors" || {
        cat "$own/output" "$own/errors" >&2
        return 2
    }
}

# Counts one case and compares it with its entry, in a folder of its own.
check() {
    name=$1
    own=$scratch/cases/$name
    mkdir -p "$own" || return 2
    expected=$(awk -v name="$name" '$1 == name { n = $2 } END { print n }' "$entries")
    case $name in
        *-misses)
            unit="missed cache lines" && columns=" ILmr DLmr DLmw "
            caches="--cache-sim=yes --I1=32768,8,64 --D1=32768,8,64 --LL=524288,8,64"
            ;;
        *) unit=instructions && columns=" Ir " && caches= ;;
    esac
    run "$name" || return 2
    counted=$(awk -v columns="$columns" '
        $1 == "events:" { for (i = 2; i <= NF; i++) wanted[i] = index(columns, " " $i " ") }
        $1 == "totals:" { for (i = 2; i <= NF; i++) if (wanted[i]) n += $i; printf "%.0f", n }
        ' "$own/profile")
    hops=$(sed -nE 's/^hops ([0-9]+) .*/\1/p; s/^ *"packet_hops": ([0-9]+),?$/\1/p' "$own/output")
    awk -v name="$name" -v counted="$counted" -v hops="$hops" -v expected="$expected" \
        -v limit="$limit" -v unit="$unit" 'BEGIN {
        if (!(counted > 0 && hops > 0)) {
            print name ": no " unit " or packet-hops counted" > "/dev/stderr"
            exit 2
        }
        measured = counted / hops
        digits = measured < 100 ? 2 : 1
        printf "%-10s %.*f %s per hop (%.0f over %.0f hops)", name, digits, measured, unit, counted, hops
        if (!(expected > 0)) {
            print ", no entry yet"
            exit 0
        }
        change = 100 * (measured / expected - 1)
        printf ", committed %s: %+.1f %%\n", expected, change
        if (change > limit) {
            printf "more than %s %% above the newest entry; ", limit
            print "if that has a reason, append one with a note"
            exit 1
        }
        if (change < -5)
            print "more than 5 % below: append an entry, so that the gain is kept"
    }'
}

[ $# -gt 0 ] || set -- $(cut -d ' ' -f 1 "$entries" | sort -u)
passed=0
failed=0
# Two cases at a time: their counts do not depend on each other.
started=0
for name; do
    (
        check "$name" >"$scratch/$name.text" 2>&1
        echo $? >"$scratch/$name.code"
    ) &
    started=$((started + 1))
    [ $((started % 2)) -ne 0 ] || wait
done
wait
for name; do
    cat "$scratch/$name.text"
    case $(cat "$scratch/$name.code") in
        0) passed=$((passed + 1)) ;;
        1) failed=$((failed + 1)) ;;
        *) exit 2 ;;
    esac
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
