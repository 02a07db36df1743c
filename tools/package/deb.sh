#!/bin/sh
# Makes the Debian packages in FOLDER from a finished build: deb.sh FOLDER [BUILD, by default build/release]
# The packages' folder is a copy of debian/, whose rules install from here; nothing is written beside the sources.
set -eu
folder=$1
KILN_BUILD=${2:-build/release}
KILN_SOURCE=$(cd "$(dirname "$0")/../.." && pwd)
export KILN_BUILD KILN_SOURCE
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
    SOURCE_DATE_EPOCH=$(date -d "$(sed -n 's/^ -- .*>  //p' "$KILN_SOURCE/debian/changelog" | head -n 1)" +%s)
fi
export SOURCE_DATE_EPOCH

rm -rf "$folder"
mkdir -p "$folder/packages"
cp -R "$KILN_SOURCE/debian" "$folder/packages/debian"
cd "$folder/packages"
as_root=
[ "$(id -u)" = 0 ] || as_root=fakeroot
dh_builddeb_options="--destdir=.."
export dh_builddeb_options
$as_root debian/rules binary >../log 2>&1 || { tail -n 30 ../log >&2; echo "deb: the whole log is $folder/log" >&2; exit 1; }
cd .. && rm -rf packages
ls -1 ./*.deb
