#!/usr/bin/env python3
"""Prints the libraries that kiln uses as CycloneDX 1.5: sbom.py VERSION PROGRAM LIBRARY...

What the files link to, directly and through others, comes from the loader (ldd, readelf); package, version and license of
each from dpkg, where there is one. Libraries that are loaded when they are first used are optional. The output is the same
for the same files."""
import hashlib
import json
import os
import re
import subprocess
import sys
import uuid

# Loaded by name when they are first used: src/backend/cpu/blas.c, src/boost/xgboost.c, src/download/curl.c.
LOADED = ["libopenblas.so.0", "libxgboost.so.0", "libcurl.so.4"]


def output(*command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def needed(path):
    """The names of the libraries that a file links to directly."""
    return re.findall(r"\(NEEDED\).*\[(.+?)\]", output("readelf", "-d", path))


def resolved(path):
    """{name: path} of all libraries that the loader takes for a file."""
    found = dict(re.findall(r"(?m)^\s*(\S+) => (/\S+)", output("ldd", path)))
    for loader in re.findall(r"(?m)^\s*(/\S+) \(0x", output("ldd", path)):
        found[os.path.basename(loader)] = loader
    return found


def installed(name):
    """Where the loader finds a library by name; None: nowhere."""
    match = re.search(rf"(?m)^\s*{re.escape(name)} .*=> (/\S+)$", output("ldconfig", "-p") or output("/sbin/ldconfig", "-p"))
    return match and match[1]


def names_of(path):
    """How dpkg may name a file: /lib is a link to /usr/lib."""
    real = os.path.realpath(path)
    return [real, path, re.sub("^/usr/", "/", real)]


def packages_of(paths):
    """{path: (package, version, architecture)} of those that dpkg knows."""
    names = [name for path in paths for name in names_of(path)]
    try:
        done = subprocess.run(["dpkg", "-S", *names], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except FileNotFoundError:
        return {}
    owners = {file: owner for owner, file in re.findall(r"(?m)^([\w.+:-]+)(?:, .*)?: (/.*)$", done.stdout)}
    found = {}
    for path in paths:
        owner = next((owners[name] for name in names_of(path) if name in owners), None)
        if owner:
            fields = output("dpkg-query", "-W", "-f", "${Package} ${Version} ${Architecture}\n", owner).split("\n")[0]
            found[path] = tuple(fields.split())
    return found


def licenses(package):
    """The license names of a package's machine-readable copyright file, of all its files."""
    try:
        with open(f"/usr/share/doc/{package}/copyright", errors="replace") as file:
            text = file.read()
    except OSError:
        return []
    names = []
    for paragraph in re.split(r"\n\s*\n", text):
        match = re.search(r"(?m)^License: *(\S.*)$", paragraph)
        if match and re.search(r"(?m)^Files: ", paragraph) and match[1] not in names:
            names.append(match[1])
    return names


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else hashlib.sha256(
            file.read()).hexdigest()


def component(name, path, found, optional):
    """`found`: its package; None: dpkg knows none."""
    made = {"type": "library", "bom-ref": name, "name": name, "scope": "optional" if optional else "required"}
    if found:
        package, version, architecture = found
        made.update(name=package, version=version, purl=f"pkg:deb/debian/{package}@{version}?arch={architecture}")
        made["licenses"] = [{"license": {"name": text}} for text in licenses(package)]
    else:
        version = re.search(r"\.so\.([\d.]+)$", os.path.realpath(path))
        made.update(version=version[1] if version else "unknown")
    made["hashes"] = [{"alg": "SHA-256", "content": sha256(path)}]
    made["properties"] = [{"name": "kiln:file", "value": name}]
    return made


def main():
    version, files = sys.argv[1], sys.argv[2:]
    paths, direct = {}, set()
    for file in files:
        paths.update(resolved(file))
        direct.update(needed(file))
    optional = {}
    for name in LOADED:
        path = installed(name)
        if path:
            optional[name] = path
            optional.update({other: p for other, p in resolved(path).items() if other not in paths})
    every = {**optional, **paths}
    packages = packages_of(every.values())
    components = [component(name, every[name], packages.get(every[name]), name not in paths) for name in sorted(every)]
    main_ref = f"kiln@{version}"
    depends = [{"ref": main_ref, "dependsOn": sorted((direct | set(LOADED)) & set(every))}]
    depends += [{"ref": name, "dependsOn": sorted(set(needed(every[name])) & set(every))} for name in sorted(every)]
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": {
            "type": "application", "bom-ref": main_ref, "name": "kiln", "version": version,
            "licenses": [{"license": {"id": "Apache-2.0"}}],
            "hashes": [{"alg": "SHA-256", "content": sha256(files[0])}]}},
        "components": components, "dependencies": depends}
    document["serialNumber"] = "urn:uuid:" + str(uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(document, sort_keys=True)))
    print(json.dumps(document, indent=2))


main()
