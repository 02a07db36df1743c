#!/bin/sh
# Run the fuzz targets: run.sh SECONDS [NAME,...]. What is found lies in build/fuzz/found, and belongs
# into tests/fuzz/corpus/NAME as crash-WHAT once it is fixed. With 5 seconds or less, as in `make
# check`, the seed is fixed and nothing that is found along the way is kept.
set -u
cd "$(dirname "$0")/../.."
seconds=$1
names=$(echo "${2:-}" | tr , ' ')
[ -n "$names" ] || names=$(cd tests/fuzz && ls fuzz_*.c | sed 's/fuzz_\(.*\)\.c/\1/')
found=build/fuzz/found
mkdir -p $found
seed=0
[ "$seconds" -gt 5 ] || seed=1
ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1
UBSAN_OPTIONS=print_stacktrace=1
export ASAN_OPTIONS UBSAN_OPTIONS
failed=0

for name in $names; do
    target=build/fuzz/tests/fuzz/fuzz_$name
    log=build/fuzz/$name.log
    grown=build/fuzz/corpus/$name
    [ "$seconds" -gt 5 ] || grown=build/fuzz/short/$name
    [ "$seconds" -gt 5 ] || rm -rf "$grown"
    mkdir -p "$grown"
    # -timeout is for one input: nothing that a person could write takes a second.
    if "$target" -seed=$seed -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1500 -max_len=4096 \
        -dict=tests/fuzz/kiln.dict -artifact_prefix="$found/$name-" -print_final_stats=1 \
        "$grown" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        echo "fuzz $name: $runs inputs in $seconds s, nothing found"
    else
        tail -n 60 "$log"
        echo "fuzz $name: found something, see $log and $found/$name-*"
        failed=1
    fi
done
exit $failed
