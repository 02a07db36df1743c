#!/bin/sh
# Run the fuzz targets: run.sh SECONDS [NAME,...]; as many at once as there are processors. What is
# found lies in build/fuzz/found, and belongs into tests/fuzz/corpus/NAME as crash-WHAT once it is
# fixed. With 5 seconds or less, as in `make check`, the seed is fixed and nothing is kept.
set -u
cd "$(dirname "$0")/../.."
seconds=$1
names=${2:-$(cd tests/fuzz && ls fuzz_*.c | sed 's/fuzz_\(.*\)\.c/\1/')}

# More than one: each in a process of its own.
list=$(echo "$names" | tr ', ' '\n\n')
if [ "$(echo "$list" | wc -l)" -gt 1 ]; then
    echo "$list" | xargs -P "$(nproc)" -I NAME sh tests/fuzz/run.sh "$seconds" NAME
    exit $?
fi

name=$names
target=build/fuzz/tests/fuzz/fuzz_$name
found=build/fuzz/found
log=build/fuzz/$name.log
if [ "$seconds" -gt 5 ]; then
    seed=0 # of the clock
    grown=build/fuzz/corpus/$name
else
    seed=1
    grown=build/fuzz/short/$name
    rm -rf "$grown"
fi
mkdir -p $found "$grown"
ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1
UBSAN_OPTIONS=print_stacktrace=1
export ASAN_OPTIONS UBSAN_OPTIONS
# -timeout is for one input, on a machine that does other things too.
if "$target" -seed=$seed -max_total_time="$seconds" -timeout=60 -rss_limit_mb=1500 -max_len=4096 \
    -dict=tests/fuzz/kiln.dict -artifact_prefix="$found/$name-" -print_final_stats=1 \
    "$grown" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    echo "fuzz $name: $runs inputs in $seconds s, nothing found"
    exit 0
fi
tail -n 60 "$log"
echo "fuzz $name: found something, see $log and $found/$name-*"
exit 1
