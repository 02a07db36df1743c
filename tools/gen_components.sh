#!/bin/sh
# Writes the components of the manual, the templates of `kiln plugin new`, to FOLDER/KIND/: gen_components.sh FOLDER PAGE...
# The first C block of a kind is its component.c, the YAML block after it conf.yaml. One that declares an operation is an
# "operation", a datamodule that reads files a "file_datamodule".
set -eu
folder=$1
shift
rm -rf "$folder"
mkdir -p "$folder"
awk -v folder="$folder" '
function save(    kind) {
    if (language == "c") {
        kind = text
        sub(/.*\.kind = KILN_KIND_/, "", kind)
        sub(/[^A-Z_].*/, "", kind)
        kind = text ~ /static const KilnCustomOp / ? "operation" : tolower(kind)
        if (kind == "datamodule" && text ~ /KILN_FIELD_PATH/) kind = "file_datamodule"
        path = kind in seen ? "" : folder "/" kind
        seen[kind] = 1
        if (path == "") return
        system("mkdir -p " path)
        printf "%s", text >(path "/component.c")
    } else if (language == "yaml" && path != "") {
        printf "%s", text >(path "/conf.yaml")
        path = ""
    }
}
/^```/ {
    if (inside) save()
    language = substr($0, 4)
    inside = !inside
    text = ""
    next
}
inside { text = text $0 "\n" }
' "$@"
