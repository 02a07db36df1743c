#!/bin/sh
# Install what is missing: `deps.sh build` for building, `deps.sh build check`
# for the tests too. With apt, through sudo when not root; any other system gets
# the list.
set -eu

build="make gcc libc6-dev pkg-config libyaml-dev libcyaml-dev libopenblas-openmp-dev libdnnl-dev
       libpng-dev libjansson-dev libxxhash-dev libdeflate-dev"
check="libcmocka-dev clang libomp-dev clang-format cppcheck python3 python3-yaml"

wanted=
for set in "$@"; do
    case $set in
    build) wanted="$wanted $build" ;;
    check) wanted="$wanted $check" ;;
    *) echo "usage: deps.sh build|check..." >&2; exit 2 ;;
    esac
done

if ! command -v dpkg-query >/dev/null; then
    echo "deps: no Debian package manager here; these must be present (Debian's names):"
    for package in $wanted; do echo "  $package"; done
    exit 0
fi

missing=
for package in $wanted; do
    state=$(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null || true)
    case $state in
    ii*) ;;
    *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0

echo "deps: installing$missing"
as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
if [ -n "$as_root" ] && ! command -v sudo >/dev/null; then
    echo "deps: not root and no sudo; run as root: apt-get install$missing" >&2
    exit 1
fi
DEBIAN_FRONTEND=noninteractive
export DEBIAN_FRONTEND
# shellcheck disable=SC2086
$as_root apt-get install -y -q --no-install-recommends $missing >/dev/null 2>&1 || {
    $as_root apt-get update -q >/dev/null
    $as_root apt-get install -y -q --no-install-recommends $missing >/dev/null
}
