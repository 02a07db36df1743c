#!/bin/sh
# All tests, in the order of how soon they find a mistake. Each step says what it ran;
# the first failure ends the run. Tests run side by side, as many as there are
# processors. The last line counts.
#
# run.sh --step NAME COMMAND... runs one step.
set -u
cd "$(dirname "$0")/.."
jobs=$(nproc)
# Threads that wait for each other leave the processors to the other tests meanwhile.
export OMP_WAIT_POLICY=passive

# Run, keep the output, show it only when the step fails.
if [ "${1:-}" = --step ]; then
    name=$2
    shift 2
    start=$(date +%s)
    log=build/check/$(echo "$name" | tr ' /' '__').log
    if "$@" >"$log" 2>&1 </dev/null; then
        result="$(printf 'ok    %-44s %4ds' "$name" $(($(date +%s) - start)))"
        result="$result$(grep -E '^(skip|headers:|layers:|fuzz )' "$log" | sort -u | sed '1s/^/\n/')"
        echo "$result" | tee -a build/check/results
        exit 0
    fi
    { printf 'FAIL  %-44s\n' "$name"; tail -n 60 "$log"; } | tee -a build/check/results
    exit 255 # xargs starts nothing more
fi

finish() {
    echo "$(grep -c '^ok ' build/check/results) passed, $(grep -c '^FAIL ' build/check/results) failed"
    exit "$1"
}

step() { sh tests/run.sh --step "$@" || finish 1; }

# together: a step for each line "NAME|COMMAND" of the input. Fails when one of them does.
together() {
    tr '\n' '\0' | xargs -0 -P "$jobs" -I LINE sh -c '
        name=${1%%|*}
        exec sh tests/run.sh --step "$name" sh -c "${1#*|}"' - LINE || finish 1
}

# units BUILD PREFIX, programs BUILD PREFIX
units() {
    ls tests/unit/test_*.c | sed "s,.*/\\(.*\\)\\.c,${2}unit \\1|$1/tests/unit/\\1," | sort_slow | together
}
programs() {
    ls tests/cli/test_*.py | sed "s,.*/\\(.*\\)\\.py,${2}program \\1|python3 & $1," | sort_slow | together
}
# Begin with those known to take long, so that none of them is left at the end.
sort_slow() {
    awk '/test_(ops|sweep|train|curves|bf16|precision_nets|passes|plan|tune|planted|manual|commands)/ { print; next }
         { rest = rest $0 "\n" } END { printf "%s", rest }'
}

build="make --no-print-directory -j$jobs WERROR=1"

rm -rf build/check
mkdir -p build/check
: >build/check/results
step "build release, gcc, -Werror" $build VARIANT=release all units plugins
step "build with clang, -Werror" $build VARIANT=clang all
step "layers" make --no-print-directory check-layers
step "headers compile alone" make --no-print-directory check-headers
step "format" make --no-print-directory check-format
step "lint" make --no-print-directory lint
units build/release "" || exit 1
programs build/release "" || exit 1

# The same again where every error and every leak of memory is a failure.
ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:allocator_may_return_null=1
UBSAN_OPTIONS=print_stacktrace=1
LSAN_OPTIONS=suppressions=$PWD/tools/lsan.txt:print_suppressions=0
export ASAN_OPTIONS UBSAN_OPTIONS LSAN_OPTIONS
step "build asan+ubsan" $build VARIANT=asan all units plugins
units build/asan "asan " || exit 1
export KILN_TEST_SHORT=1
programs build/asan "asan " || exit 1

# What was once found, and a few seconds of looking for more.
step "build fuzz targets" $build VARIANT=fuzz fuzzers
step "fuzz, 5 s each" sh tests/fuzz/run.sh 5
finish 0
