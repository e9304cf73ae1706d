#!/usr/bin/env python3
"""What every package says about the program: `facts.py [TARGET BINARY]` prints it as shell assignments."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]

# How each packager names a target of rustc. A further target is a further line.
TARGETS = {
    "x86_64-unknown-linux-gnu": {"deb": "amd64", "npm_os": "linux", "npm_cpu": "x64", "machine": "x86_64"},
    "aarch64-unknown-linux-gnu": {"deb": "arm64", "npm_os": "linux", "npm_cpu": "arm64", "machine": "aarch64"},
}

# Names that pip knew before the tags that spell the version of glibc.
OLD_WHEEL_TAGS = {(2, 5): "manylinux1", (2, 12): "manylinux2010", (2, 17): "manylinux2014"}

DEBIAN_LIBRARIES = {"libgcc_s.so.1": "libgcc-s1", "libstdc++.so.6": "libstdc++6"}


def program():
    """Name, version, description, licence and keywords, from Cargo.toml."""
    command = ["cargo", "metadata", "--no-deps", "--locked", "--offline", "--format-version", "1"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    found = next(package for package in metadata["packages"] if package["name"] == "portway")
    # The tests make packages of an earlier version.
    version = os.environ.get("PACKAGE_VERSION") or found["version"]
    return {
        "name": found["name"],
        "version": version,
        "description": found["description"],
        "license": found["license"],
        "keywords": found["keywords"],
        # Empty until the project has an address; a packager that requires one says so.
        "homepage": os.environ.get("HOMEPAGE") or found["homepage"] or found["repository"] or "",
    }


def required_glibc(binary):
    """The newest version of glibc whose symbols the binary asks for."""
    names = re.findall(rb"\0GLIBC_(\d+)\.(\d+)", binary.read_bytes())
    return max((int(major), int(minor)) for major, minor in names)


def debian_dependencies(binary):
    content = binary.read_bytes()
    needed = [package for library, package in DEBIAN_LIBRARIES.items() if b"\0" + library.encode() + b"\0" in content]
    major, minor = required_glibc(binary)
    return ", ".join([f"libc6 (>= {major}.{minor})", *needed])


def wheel_platforms(target, binary):
    version = required_glibc(binary)
    machine = TARGETS[target]["machine"]
    tags = [f"manylinux_{version[0]}_{version[1]}_{machine}"]
    if version in OLD_WHEEL_TAGS:
        tags.append(f"{OLD_WHEEL_TAGS[version]}_{machine}")
    return tags


def main():
    facts = program()
    facts["keywords"] = " ".join(facts["keywords"])
    if len(sys.argv) == 3:
        target, binary = sys.argv[1], pathlib.Path(sys.argv[2])
        facts |= TARGETS[target]
        facts["glibc"] = ".".join(map(str, required_glibc(binary)))
        facts["deb_depends"] = debian_dependencies(binary)
    for name, value in facts.items():
        print(f"{name}={shlex.quote(value)}")


if __name__ == "__main__":
    main()
