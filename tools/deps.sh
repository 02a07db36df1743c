#!/bin/sh
# Installs missing packages: `deps.sh build` for building, `deps.sh build check` for the tests too, `arm64`
# for those of ARM64 in emulation, `deb` for packages, `man` and `manual` for `make man` and `make manual`, `fonts` for
# experiment=text-lines/crnn; `deps.sh list SET...` only lists them. Uses apt, with sudo unless root; other systems get the list.
set -eu

build="make gcc libc6-dev pkg-config libyaml-dev libcyaml-dev libdnnl-dev
       libpng-dev libjpeg62-turbo-dev libjansson-dev libxxhash-dev libdeflate-dev libmd-dev libutf8proc-dev libpcre2-dev
       zlib1g-dev libzstd-dev
       libwebp-dev libcairo2-dev libprotobuf-c-dev protobuf-c-compiler libsqlite3-dev libxgboost-dev
       libcurl4-openssl-dev
       libopenblas0-pthread"
check="libcmocka-dev g++ clang libclang-rt-dev libomp-dev clang-format cppcheck python3 python3-yaml python3-numpy
       python3-jsonschema strace jq zsh fish bash-completion fonts-dejavu-core slurm-wlm munge
       python3-sphinx python3-myst-parser furo man-db mandoc"
arm64="gcc-aarch64-linux-gnu qemu-user mmdebstrap"
deb="debhelper dpkg-dev fakeroot"
man=python3
manual="$man python3-sphinx python3-myst-parser furo"
fonts="fonts-dejavu-core fonts-dejavu-extra fonts-liberation fonts-freefont-ttf fonts-urw-base35"

wanted= list=
for set in "$@"; do
    case $set in
    build) wanted="$wanted $build" ;;
    check) wanted="$wanted $check" ;;
    arm64) wanted="$wanted $arm64" ;;
    deb) wanted="$wanted $deb" ;;
    man) wanted="$wanted $man" ;;
    manual) wanted="$wanted $manual" ;;
    fonts) wanted="$wanted $fonts" ;;
    list) list=1 ;;
    *) echo "usage: deps.sh [list] build|check|arm64|deb|man|manual|fonts..." >&2; exit 2 ;;
    esac
done
if [ -n "$list" ]; then
    # shellcheck disable=SC2086
    printf '%s\n' $wanted
    exit
fi

# Without dpkg: whether the library or program of a Debian package is installed.
present() {
    case $1 in
    libyaml-dev) pkg-config --exists yaml-0.1 ;;
    libpng-dev) pkg-config --exists libpng ;;
    libjpeg62-turbo-dev) pkg-config --exists libjpeg ;;
    libwebp-dev) pkg-config --exists libwebp ;;
    libcairo2-dev) pkg-config --exists cairo ;;
    libsqlite3-dev) pkg-config --exists sqlite3 ;;
    libxgboost-dev) pkg-config --exists xgboost ;;
    libcurl4-openssl-dev) pkg-config --exists libcurl ;;
    libprotobuf-c-dev) pkg-config --exists libprotobuf-c ;;
    protobuf-c-compiler) command -v protoc-c >/dev/null ;;
    libpcre2-dev) pkg-config --exists libpcre2-8 ;;
    zlib1g-dev) pkg-config --exists zlib ;;
    libcyaml-dev | libjansson-dev | libxxhash-dev | libdeflate-dev | libmd-dev | libutf8proc-dev | libzstd-dev | libcmocka-dev)
        name=${1%-dev}
        [ "$name" = libjansson ] || [ "$name" = libcmocka ] && name=${name#lib}
        pkg-config --exists "$name" ;;
    libdnnl-dev) echo '#include <dnnl.h>' | ${CC:-cc} -fsyntax-only -x c - 2>/dev/null ;;
    libopenblas0-pthread) echo 'int main(void) { return 0; }' | ${CC:-cc} -x c - -o /dev/null -l:libopenblas.so.0 2>/dev/null ;;
    libc6-dev) echo '#include <stdio.h>' | ${CC:-cc} -fsyntax-only -x c - 2>/dev/null ;;
    libclang-rt-dev) echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | clang -fsanitize=fuzzer -x c - -o /dev/null 2>/dev/null ;;
    libomp-dev) echo 'int main(void) { return 0; }' | clang -fopenmp -x c - -o /dev/null 2>/dev/null ;;
    slurm-wlm) command -v slurmctld >/dev/null || [ -x /usr/sbin/slurmctld ] ;;
    munge) command -v munged >/dev/null || [ -x /usr/sbin/munged ] ;;
    bash-completion) [ -e /usr/share/bash-completion/bash_completion ] ;;
    debhelper) command -v dh >/dev/null ;;
    dpkg-dev) command -v dpkg-shlibdeps >/dev/null ;;
    gcc-aarch64-linux-gnu) command -v aarch64-linux-gnu-gcc >/dev/null ;;
    qemu-user) command -v qemu-aarch64 >/dev/null ;;
    fonts-dejavu-core) fc-list 'DejaVu Sans:bold' 2>/dev/null | grep -q . ;;
    fonts-dejavu-extra) fc-list 'DejaVu Serif:italic' 2>/dev/null | grep -q . ;;
    fonts-liberation) fc-list 'Liberation Serif' 2>/dev/null | grep -q . ;;
    fonts-freefont-ttf) fc-list FreeSerif 2>/dev/null | grep -q . ;;
    fonts-urw-base35) fc-list C059 2>/dev/null | grep -q . ;;
    python3-numpy) python3 -c 'import numpy' 2>/dev/null ;;
    python3-yaml) python3 -c 'import yaml' 2>/dev/null ;;
    python3-sphinx) command -v sphinx-build >/dev/null ;;
    python3-myst-parser) python3 -c 'import myst_parser' 2>/dev/null ;;
    man-db) command -v man >/dev/null ;;
    furo) python3 -c 'import furo' 2>/dev/null ;;
    python3-jsonschema) python3 -c 'import jsonschema' 2>/dev/null ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

if ! command -v dpkg-query >/dev/null; then
    missing=
    for package in $wanted; do present "$package" || missing="$missing $package"; done
    [ -n "$missing" ] || exit 0
    echo "deps: packages are installed on Debian and Ubuntu only; missing here (Debian's names):" >&2
    for package in $missing; do echo "  $package" >&2; done
    exit 1
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
