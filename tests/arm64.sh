#!/bin/sh
# Builds kiln for ARM64 and runs it here, in qemu's emulation of one program: unit tests, and short
# training runs whose weights must be this machine's within rounding. Installs what is missing. On an ARM64
# machine run `make check` instead.
set -u
cd "$(dirname "$0")/.."
# The processor has NEON but not SVE, like most; threads that wait sleep.
export QEMU_CPU=neoverse-n1 QEMU_LD_PREFIX=build/arm64/root OMP_WAIT_POLICY=passive
check=build/check-arm64
. tests/steps.sh

# The libraries as ARM64 packages, in a folder of their own: the system's packages stay as they are.
make_root() {
    root=build/arm64/root
    libraries=$(sh tools/deps.sh list build check | grep '^lib' | grep -vE '^lib(clang|omp)' | paste -sd ,)
    [ "$(cat $root/complete 2>/dev/null)" != "$libraries" ] || return 0
    rm -rf $root
    mkdir -p build/arm64
    mmdebstrap --variant=extract --architectures=arm64 --include="$libraries" \
        "$(. /etc/os-release && echo "$VERSION_CODENAME")" $root || return
    # Absolute links would lead to the system's own libraries.
    find $root/lib $root/usr/lib -type l -lname '/*' | while read -r link; do
        ln -sfnr "$root$(readlink "$link")" "$link"
    done
    echo "$libraries" >$root/complete
}

# Not run: tests that compile plugins, which this machine's compiler makes for this machine; that measure
# processor time, count the process's threads (the emulator has one of its own) or fail allocations; or
# that take minutes in emulation.
units() {
    find tests/unit -name 'test_*.c' | sort | sed 's/\.c$//' |
        grep -vE '/test_(plugin|usage|threads|save_nomem|models|network_gradients|registry_random|ops|ops_bf16|f64|ops_sizes|bf16_true|precision_nets|curves|backend_ops)$' |
        sed 's,\(.*\)/\(.*\),unit \2|timeout 600 qemu-aarch64 build/arm64/release/\1/\2,' | together
}

make="make --no-print-directory -j$(nproc) WERROR=1"
step "packages" sh tools/deps.sh build check arm64
step "ARM64 libraries" make_root
step "build release" $make all
if step "build for ARM64" $make ARCH=arm64 all units; then
    units
    step "training" python3 tests/arm64_train.py build/release build/arm64/release
else
    not_run "units and training" "the build for ARM64 failed"
fi
finish
