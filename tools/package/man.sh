#!/bin/sh
# Prints kiln's man page, from the help texts of the program: man.sh build/release/kiln
set -eu
kiln=$(realpath "$1")
cd / # no config of the user's

# A line of help with what roff would read as its own.
escape='function escape(s) { gsub(/\\/, "\\e", s); gsub(/-/, "\\-", s); return s }
function text(s) { s = escape(s); return s ~ /^[.'"'"']/ ? "\\&" s : s }'

echo ".TH KILN 1 \"\" \"kiln $("$kiln" version | sed -n 's/^kiln \([^ ,]*\).*/\1/p')\" \"User Commands\""
cat <<'END'
.SH NAME
kiln, train \- train and use models from configs
.SH SYNOPSIS
.B kiln
.I COMMAND
[\fIFLAG\fR...] [\fIKEY\fR=\fIVALUE\fR...]
.br
.B train
[\fIFLAG\fR...] [\fIKEY\fR=\fIVALUE\fR...]
.SH DESCRIPTION
A config goes in, a trained model comes out: kiln composes YAML files and arguments in Hydra's config language, checks every value,
builds the components and trains them.
.B train
is
.BR "kiln train" .
.SH COMMANDS
END
commands=$("$kiln" --help | sed -n 's/^  \([a-z-]*\)  .*/\1/p')
for command in $commands; do
    printf '.SS kiln %s\n' "$(printf %s "$command" | sed 's/-/\\-/g')"
    if [ "$command" = train ]; then
        cat <<'END'
Composes a config and trains it.
.B train \-\-help
also describes the groups, components and values of the config at hand.
END
        part='/^more$/ { exit } /^flags: / { flags = 1 } flags'
    fi
    "$kiln" "$command" --help | awk "${part:-1}" | awk "$escape"'
    # usage, paragraphs, and headings with pairs "  LEFT   RIGHT" below them
    /^usage: / { sub(/^usage: /, ""); print ".nf"; print text($0); usage = 1; next }
    usage && /^ / { print text($0); next }
    usage { print ".fi"; usage = 0 }
    /^$/ { print ".PP"; next }
    /^  [^ ]/ {
        sub(/^  /, "")
        at = match($0, /   */)
        print ".TP"
        print ".B " text(at ? substr($0, 1, at - 1) : $0)
        if (at) print text(substr($0, at + RLENGTH))
        next
    }
    /^ / { sub(/^ */, ""); print text($0); next }
    /^(examples|flags: .*)$/ { print ".PP"; print ".I " text($0); next }
    { print text($0) }
    END { if (usage) print ".fi" }'
    part=
done
cat <<'END'
.SH ENVIRONMENT
.TP
.B KILN_ISA
The highest processor features to use: base, avx2, avx512, avx512_bf16, amx.
.TP
.B OMP_NUM_THREADS
The number of threads that compute, unless trainer.threads sets it.
.SH EXIT STATUS
0: done. 1: the command failed. 2: a wrong command line. 3: a number that is not finite. 4: reading or writing failed. 5: out of memory.
128 and a signal's number: it stopped a run, which has saved a checkpoint.
.SH FILES
.TP
.I conf/
The configs of a project; the built\-in ones are in the program, with a copy in /usr/share/kiln/conf.
.TP
.I outputs/
The folders of runs.
.SH SEE ALSO
/usr/share/doc/kiln/docs
END
