#!/bin/sh
# Checks which folder includes which: the table of folders in docs/design.md. Prints each violation as
# file:line and exits 1.
set -eu
cd "$(dirname "$0")/.."

files=$(find src callbacks datamodules tasks examples -name '*.[ch]' 2>/dev/null | sort)
# shellcheck disable=SC2086 # file names hold no spaces
awk '
# A folder and the folders directly below it. A folder may include its own files, everything below it,
# and the public headers.
function below(folder, list,    parts, n, i) {
    n = split(list, parts, " ")
    for (i = 1; i <= n; i++)
        under[folder, parts[i]] = 1
    folders[folder] = 1
}
BEGIN {
    below("base", "")
    below("config", "base")
    below("schema", "config")
    below("registry", "schema")
    below("image", "data config")
    below("tensor", "base")
    below("graph", "tensor base")
    below("backend", "graph")
    below("nn", "graph tensor base")
    below("data", "tensor")
    below("events", "base")
    below("plot", "base")
    below("boost", "base")
    below("download", "base")
    below("text", "data")
    below("train", "registry nn data download")
    below("python", "registry")
    below("runs", "config")
    below("sweep", "registry runs")
    below("flat", "train sweep")
    below("cli", "train sweep python runs backend image data events plot text")
    changed = 1
    while (changed) { # transitive
        changed = 0
        for (a in folders)
            for (b in folders)
                for (c in folders)
                    if (((a, b) in under) && ((b, c) in under) && !((a, c) in under)) {
                        under[a, c] = 1
                        changed = 1
                    }
    }
}
function violation(why) {
    printf "%s:%d: %s: %s\n", FILENAME, FNR, header, why
    bad++
}
# The folder whose rules apply to a file: "component", "public", or a name.
function place(file,    parts) {
    if (file ~ /^(callbacks|datamodules|tasks|examples)\//) return "component"
    if (file ~ /^src\/nn\/(optimizers|schedulers)\//) return "component"
    if (file ~ /^src\/sweep\/(sweepers|pruners|launchers)\//) return "component"
    if (file ~ /^src\/train\/strategies\//) return "component"
    if (file ~ /^src\/text\/tokenizers\//) return "component"
    if (file == "src/kiln.h" || file == "src/kiln_embed.h" || file ~ /^src\/kiln\//) return "public"
    split(file, parts, "/")
    return parts[2]
}
FNR == 1 { here = place(FILENAME); count++ }
/^[ \t]*#[ \t]*include[ \t]*[<"]/ {
    match($0, /[<"][^>"]*[>"]/)
    quoted = substr($0, RSTART, 1) == "\""
    header = substr($0, RSTART + 1, RLENGTH - 2)
    if (header ~ /^(cyaml\/)?cyaml\.h$/ && FILENAME != "src/schema/bind.c")
        violation("only src/schema/bind.c knows libcyaml")
    if (header ~ /^(dnnl|dnnl_.*|oneapi\/dnnl\/.*)\.h(pp)?$/ &&
        FILENAME !~ /^src\/backend\/cpu\//)
        violation("only src/backend/cpu knows the compute libraries")
    if (header ~ /(^|\/)(cblas|openblas.*)\.h$/)
        violation("OpenBLAS is loaded when first used; src/backend/cpu/blas.c declares what it calls")
    if (header ~ /sqlite/ && FILENAME != "src/data/table/query.c")
        violation("only src/data/table/query.c knows SQLite")
    if (header ~ /cairo/ && FILENAME !~ /^src\/plot\//)
        violation("only src/plot knows cairo")
    if (header ~ /^(arrow|parquet)\//)
        violation("only src/data/records/parquet_arrow.cc knows Arrow")
    if (header ~ /^curl\// && FILENAME != "src/download/curl.c")
        violation("only src/download/curl.c knows libcurl")
    if (header ~ /^fontconfig\// && FILENAME !~ /^src\/plot\//)
        violation("only src/plot knows fontconfig")
    if (header ~ /^xgboost\// && FILENAME != "src/boost/xgboost.c")
        violation("only src/boost/xgboost.c knows XGBoost")
    if (header == "utf8proc.h" && FILENAME !~ /^src\/text\/unicode\//)
        violation("only src/text/unicode knows utf8proc")
    if (header == "pcre2.h" && FILENAME !~ /^src\/text\/unicode\//)
        violation("only src/text/unicode knows PCRE2")
    if (header ~ /^(zlib|zstd)\.h$/ && FILENAME != "src/data/records/unpack.c")
        violation("only src/data/records/unpack.c knows zlib and zstd")
    if (header ~ /protobuf-c|\.pb-c\.h$/ && FILENAME !~ /^src\/events\//)
        violation("only src/events knows protobuf-c")
    if (!quoted)
        next
    if (here == "component") {
        if (header ~ /^kiln\/embed\// || header !~ /^kiln(\.h$|\/)/)
            violation("a component is written against kiln.h and headers of kiln/, without those of kiln_embed.h")
        next
    }
    if (header ~ /^kiln\//)
        next
    if (header == "kiln.h" || header == "kiln_embed.h") {
        if (here == "public" && FILENAME != "src/kiln_embed.h")
            violation("a public header includes the ones it needs from kiln/")
        next
    }
    if (here == "public") {
        violation("public headers include only public headers")
        next
    }
    folder = header
    sub(/\/.*/, "", folder)
    if (folder == header) {
        violation("write the folder: \"" here "/" header "\"")
    } else if (!(here in folders)) {
        violation("the folder src/" here " is not in the table of tools/check_layers.sh")
    } else if (folder != here && !((here, folder) in under)) {
        violation("src/" here " is not above src/" folder)
    }
}
END {
    if (bad) exit 1
    printf "layers: %d files include only downward\n", count
}' $files
