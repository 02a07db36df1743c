#!/bin/sh
# Runs all tests, those that find mistakes soonest first, as many at once as there are processors.
# Each step prints one line; the end lists the failures and counts.
set -u
cd "$(dirname "$0")/.."
# Waiting OpenMP threads sleep instead of spinning, so that other tests can run.
export OMP_WAIT_POLICY=passive
check=build/check
. tests/steps.sh

# units BUILD PREFIX [TEST...], programs BUILD PREFIX
units() {
    build=$1 prefix=$2
    shift 2
    [ $# -gt 0 ] || set -- $(find tests/unit -name 'test_*.c' | sort | xargs basename -s .c)
    for test in "$@"; do
        source=$(find tests/unit -name "$test.c") # not the program: a moved test leaves its old one
        echo "${prefix}unit $test|$build/${source%.c}"
    done | sort_slow | together
}
programs() {
    ls tests/cli/*/test_*.py | sed "s,.*/\\(.*\\)\\.py,${2}program \\1|python3 & $1," | sort_slow | together
}
# Slow tests first, so that none of them runs alone at the end.
sort_slow() {
    awk '/test_(component_contract|ops|sweep|train|run_fit|hook_order|curves|bf16|precision_nets|graph_passes|plan|tune|protected|mistakes_in|manual|commands|docs)/ { print; next }
         { rest = rest $0 "\n" } END { printf "%s", rest }'
}
# The processor levels of this machine; all steps but those of a level use the highest.
levels() {
    KILN_ISA=? build/release/train --plan 2>&1 | sed -n 's/.*expected one of //p' | tr -d , | tr ' ' '\n'
}
# Tests of the kernels; test_curves and test_ops_sizes would take too long at each level.
kernels="test_ops test_ops_bf16 test_ops_extreme test_reductions test_backend_ops test_ops_torch test_attention_one test_long_sums
    test_bf16_true test_precision test_precision_nets test_embedding test_threads test_graph_passes test_map test_nn_sequence test_optim"

make="make --no-print-directory -j$(nproc) WERROR=1"
step "build release, gcc, -Werror" $make VARIANT=release all units plugins
release=$?
step "layers" make --no-print-directory check-layers
step "pointers in comments and docs" make --no-print-directory check-pointers
step "headers compile alone" make --no-print-directory check-headers
step "format" make --no-print-directory check-format
step "lint" make --no-print-directory lint
if [ $release -eq 0 ]; then
    units build/release ""
    for level in $(levels | sed '$d'); do
        export KILN_ISA="$level"
        units build/release "$level " $kernels
        unset KILN_ISA
    done
    step "fuzz graphs at each level" sh tests/fuzz/graphs/run.sh build/release 5
    # What AMX would do, on processors that have all but that.
    if [ "$(levels | tail -n 1)" = avx512_bf16 ]; then
        if step "build with emulated AMX" $make VARIANT=release emulated-amx TESTS="$kernels"; then
            export KILN_ISA=amx
            units build/release/emulated_amx "emulated amx " $kernels
            step "emulated amx fuzz graphs" sh tests/fuzz/graphs/run.sh build/release/emulated_amx 5
            unset KILN_ISA
        else
            not_run "kernels with emulated AMX" "the build failed"
        fi
    fi
    programs build/release ""
else
    not_run "unit and program tests" "the release build failed"
fi

# The same with AddressSanitizer and UBSan: every memory error and every leak fails.
ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:allocator_may_return_null=1
UBSAN_OPTIONS=print_stacktrace=1
LSAN_OPTIONS=suppressions=$PWD/tools/lsan.txt:print_suppressions=0
export ASAN_OPTIONS UBSAN_OPTIONS LSAN_OPTIONS
if step "build asan+ubsan" $make VARIANT=asan all units plugins; then
    units build/asan "asan "
    step "asan fuzz graphs" sh tests/fuzz/graphs/run.sh build/asan 5
    export KILN_TEST_SHORT=1
    programs build/asan "asan "
else
    not_run "asan unit and program tests" "the asan+ubsan build failed"
fi

# The corpus of earlier findings, and a few seconds of fuzzing. The fuzz targets are built with clang.
if step "build with clang, -Werror, and fuzz targets" $make VARIANT=fuzz objects fuzzers; then
    step "fuzz, 5 s each" sh tests/fuzz/run.sh 5
else
    not_run "fuzz" "the build with clang failed"
fi
finish
