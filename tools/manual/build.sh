#!/bin/sh
# Builds the manual: build.sh KILN FOLDER. KILN is the program, whose components are described. Writes FOLDER/html, and
# FOLDER/pages with what Sphinx reads: links to docs/ and other pages, and the generated ones. Any warning is an error.
set -eu
kiln=$1 folder=$2
tools=$(dirname "$0")
root=$(cd "$tools/../.." && pwd)

rm -rf "$folder"
mkdir -p "$folder/pages/examples/embed" "$folder/pages/bench" "$folder/pages/tests"
pages=$(cd "$folder/pages" && pwd)
ln -s "$root/docs" "$root/CHANGELOG.md" "$root/tools/manual/index.rst" "$pages"
ln -s "$root/bench/README.md" "$pages/bench"
ln -s "$root/tests/README.md" "$pages/tests"
ln -s "$root/examples/plugin" "$root/examples/python" "$pages/examples"
ln -s "$root/examples/embed/"*.c "$pages/examples/embed"
{
    echo 'Programs that embed kiln'
    echo '========================'
    for program in "$root/examples/embed/"*.c; do
        name=$(basename "$program")
        printf '\n%s\n%s\n\n.. literalinclude:: %s\n   :language: c\n' "$name" '--------------------' "$name"
    done
} >"$pages/examples/embed/index.rst"
python3 "$tools/components.py" "$kiln" "$pages/components"
python3 "$tools/api.py" "$root/src" "$pages/api"
KILN_BASE_H="$root/src/kiln/base.h" sphinx-build -q -W --keep-going -b html -d "$folder/doctrees" \
    -c "$tools" "$pages" "$folder/html"
