#!/bin/sh
# Runs dialogues of TCP and generated scenarios under a checker of memory accesses.
#
# With AddressSanitizer where the Rust toolchain has its run-time library, as those of rustup have;
# else with valgrind. RUSTC_BOOTSTRAP lets a stable compiler take -Zsanitizer. What is compiled goes
# into target/sanitise. Ends with an error after SANITISE_MINUTES, 60 unless set.
cd "$(dirname "$0")/.." || exit 1
minutes=${SANITISE_MINUTES:-60}
host=$(rustc -vV | sed -n 's/^host: //p')
library="$(rustc --print sysroot)/lib/rustlib/$host/lib"
export CARGO_TARGET_DIR="$PWD/target/sanitise"
# Of the generated inputs so many: a checked program is several times slower.
export EASTWEST_FUZZ_INPUTS="${EASTWEST_FUZZ_INPUTS:-2000}"

tests() {
    "$@" -p eastwest-drill --test collection --test language --test fuzz_script &&
        "$@" -p eastwest-sim --test fuzz_scenario --test hadoop_properties &&
        "$@" -p eastwest-fuzz --test valid_scenarios
}

if ls "$library"/librustc-*_rt.asan.a >/dev/null 2>&1; then
    echo "AddressSanitizer, $(rustc --version)"
    export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address" ASAN_OPTIONS=detect_leaks=1
    tests timeout "${minutes}m" cargo test --locked --target "$host"
elif command -v valgrind >/dev/null; then
    echo "$(valgrind --version), $(rustc --version)"
    name=$(echo "$host" | tr 'a-z-' 'A-Z_')
    export "CARGO_TARGET_${name}_RUNNER=valgrind --quiet --error-exitcode=9 --leak-check=full"
    tests timeout "${minutes}m" cargo test --locked --target "$host"
else
    echo "needs a Rust toolchain with AddressSanitizer, or valgrind"
    exit 1
fi
