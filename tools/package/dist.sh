#!/bin/sh
# Writes the source tarball, the same bytes for the same files: dist.sh VERSION FILE.tar.gz
# Of a git checkout it has the tracked files as they are, else all but build/.
set -eu
version=$1 file=$2
cd "$(dirname "$0")/../.."

if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date -r debian/changelog +%s)
fi
if git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files -z
else
    find . -type d \( -path ./build -o -name __pycache__ \) -prune -o \( -type f -o -type l \) -printf '%P\0'
fi | LC_ALL=C sort -z >"$file.list"
# In numbers and names nothing of this machine.
LC_ALL=C tar --create --file="$file.tmp" --format=gnu --mtime="@$SOURCE_DATE_EPOCH" --owner=root:0 --group=root:0 --mode=u=rwX,go=rX \
    --transform "s,^,kiln-$version/,S" --no-recursion --null --files-from="$file.list"
gzip -9n <"$file.tmp" >"$file.gz"
mv "$file.gz" "$file"
rm "$file.tmp" "$file.list"
