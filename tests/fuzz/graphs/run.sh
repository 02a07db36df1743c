#!/bin/sh
# Random graphs on the CPU's backend against the reference, at each processor level of this machine:
# run.sh BUILD SECONDS, for example run.sh build/release 60. With 5 seconds or less, as in
# `make check`, the seeds are fixed; else they are of the clock.
set -u
cd "$(dirname "$0")/../../.."
build=$1
seconds=$2
levels=${KILN_ISA:-$(KILN_ISA=? "$build/train" --plan 2>&1 | sed -n 's/.*expected one of //p' | tr -d ,)}
failed=0

for level in $levels; do
    export KILN_ISA="$level"
    if [ "$seconds" -gt 5 ]; then
        set -- --seed "$(date +%s)000000" --seconds "$seconds"
    else
        set -- --seed 1 --graphs 60
    fi
    "$build/tests/fuzz/graphs/fuzz_graphs" "$@" || failed=1
done
exit $failed
