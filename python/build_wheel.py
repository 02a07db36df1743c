#!/usr/bin/env python3
"""Builds the wheel: the package and libkiln.so, whose config groups are inside of it. Needs no other packages.

    python3 python/build_wheel.py BUILD     # such as build/release; prints the wheel's path, in BUILD

It is also the build backend of pyproject.toml, which takes the library from $KILN_BUILD or build/release. The same files
give the same bytes."""
import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("KILN_BUILD", HERE.parent / "build/release"))


def _field(name):
    return re.search(rf'^{name} = "(.*)"$', (HERE / "pyproject.toml").read_text(), re.M)[1]


def _metadata():
    return (f"Metadata-Version: 2.1\nName: {_field('name')}\nVersion: {_field('version')}\nSummary: {_field('description')}\n"
            f"License: Apache-2.0\nRequires-Python: {_field('requires-python')}\nRequires-Dist: numpy\n"
            "Provides-Extra: tables\nRequires-Dist: pandas; extra == 'tables'\n"
            "Description-Content-Type: text/markdown\n\n" + (HERE / "README.md").read_text())


def _stripped(library):
    """The bytes of a library without debugging symbols, where `strip` is installed."""
    if shutil.which("strip") is None:
        return library.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder, library.name)
        subprocess.run(["strip", "--strip-unneeded", "-o", copy, library], check=True)
        return copy.read_bytes()


def _files(build):
    """What the wheel has, by name."""
    if not (build / "libkiln.so").exists():
        raise FileNotFoundError(f"{build / 'libkiln.so'}: build it first (make), or name its folder in KILN_BUILD")
    info = f"kiln-{_field('version')}.dist-info"
    tag = "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())
    files = {f"kiln/{path.name}": path.read_bytes() for path in (HERE / "kiln").iterdir() if path.suffix in (".py", ".typed")}
    files.update({f"kiln/{path.name}": _stripped(path) for path in build.glob("libkiln*.so")})
    files[f"{info}/METADATA"] = _metadata().encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: kiln\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    files[f"{info}/LICENSE"] = (HERE.parent / "LICENSE").read_bytes()
    record = "".join(f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
                     for name, data in sorted(files.items()))
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    return f"kiln-{_field('version')}-{tag}.whl", files


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517."""
    name, files = _files(BUILD)
    with zipfile.ZipFile(pathlib.Path(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in sorted(files.items()):
            entry = zipfile.ZipInfo(path)  # of 1980
            entry.external_attr = (0o755 if path.endswith(".so") else 0o644) << 16
            wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return name


def build_sdist(sdist_directory, config_settings=None):
    """PEP 517; the package is a part of kiln, whose sources are not only here."""
    raise NotImplementedError("build a wheel: make wheel")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: build_wheel.py BUILD")
    BUILD = pathlib.Path(sys.argv[1])
    print(BUILD / build_wheel(BUILD))
