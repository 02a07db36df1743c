#!/bin/sh
# All tests, in the order of how soon they find a mistake. Each step says what
# it ran; the first failure ends the run. The last line counts.
set -u
cd "$(dirname "$0")/.."
jobs=$(nproc)
passed=0

# step NAME COMMAND...: run, keep the output, show it only when it fails.
step() {
    name=$1
    shift
    start=$(date +%s)
    if "$@" >build/check.log 2>&1; then
        passed=$((passed + 1))
        printf 'ok    %-44s %4ds\n' "$name" $(($(date +%s) - start))
        grep -E '^(skip|headers:|layers:|fuzz )' build/check.log | sort -u
    else
        printf 'FAIL  %-44s\n' "$name"
        tail -n 60 build/check.log
        echo "$passed passed, 1 failed"
        exit 1
    fi
}

build() { make --no-print-directory -j"$jobs" VARIANT="$1" WERROR=1 $2; }

mkdir -p build
step "build release, gcc, -Werror" build release "all units plugins"
step "build with clang, -Werror" build clang "all"
step "layers" make --no-print-directory check-layers
step "headers compile alone" make --no-print-directory check-headers
step "format" make --no-print-directory check-format
step "lint" make --no-print-directory lint
for unit in tests/unit/test_*.c; do
    name=$(basename "$unit" .c)
    step "unit $name" "build/release/tests/unit/$name"
done
for script in tests/cli/test_*.py; do
    step "program $(basename "$script" .py)" python3 "$script" build/release
done

# The same again where every error and every leak of memory is a failure.
ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:allocator_may_return_null=1
UBSAN_OPTIONS=print_stacktrace=1
export ASAN_OPTIONS UBSAN_OPTIONS
step "build asan+ubsan" build asan "all units plugins"
for unit in tests/unit/test_*.c; do
    name=$(basename "$unit" .c)
    step "asan unit $name" "build/asan/tests/unit/$name"
done
for script in tests/cli/test_*.py; do
    step "asan program $(basename "$script" .py)" env KILN_TEST_SHORT=1 python3 "$script" build/asan
done

# What was once found, and a few seconds of looking for more.
step "build fuzz targets" build fuzz fuzzers
step "fuzz, 5 s each" sh tests/fuzz/run.sh 5
echo "$passed passed, 0 failed"
