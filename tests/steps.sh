# Runs the steps of a test run. A failed step does not stop the others; the failures are listed last.
#
#   check=FOLDER; . tests/steps.sh    in a script without arguments, at the root of the sources;
#                                     FOLDER is emptied and then gets the output of each step
#   step NAME COMMAND...              run one step; the status is the command's
#   together                          run the steps "NAME|COMMAND" of the input's lines side by
#                                     side, as many at once as there are processors
#   not_run NAME REASON               report what cannot run
#   finish                            list the failures, count; the status is 1 if there are any
#
# `together` runs each step with: sh tests/steps.sh --step NAME COMMAND...

# Log the output; print its end only if the step fails.
step() {
    name=$1
    shift
    start=$(date +%s)
    log=$check/$(echo "$name" | tr ' /' '__').log
    if "$@" >"$log" 2>&1 </dev/null; then
        result="$(printf 'ok    %-44s %4ds' "$name" $(($(date +%s) - start)))"
        result="$result$(grep -E '^(skip|headers:|layers:|pointers:|docs:|fuzz )' "$log" | sort -u | sed '1s/^/\n/')"
        echo "$result" | tee -a "$check/results"
        return 0
    fi
    printf 'FAIL  %-44s %s\n' "$name" "$log" >>"$check/results"
    { printf 'FAIL  %s\n' "$name"; tail -n 60 "$log"; }
    return 1
}

together() {
    tr '\n' '\0' | xargs -0 -r -P "$(nproc)" -I LINE sh -c '
        exec sh tests/steps.sh --step "${1%%|*}" sh -c "${1#*|}"' - LINE || true
}

not_run() {
    printf 'none  %s: %s\n' "$1" "$2" | tee -a "$check/results"
}

finish() {
    failed=$(grep -c '^FAIL ' "$check/results")
    if [ "$failed" -gt 0 ]; then
        printf '\nwhat failed, and where its output is:\n'
        grep -E '^(FAIL|none) ' "$check/results"
    fi
    echo "$(grep -c '^ok ' "$check/results") passed, $failed failed"
    [ "$failed" -eq 0 ]
}

if [ "${1:-}" = --step ]; then
    shift
    step "$@"
    exit
fi
export check
rm -rf "$check"
mkdir -p "$check"
: >"$check/results"
