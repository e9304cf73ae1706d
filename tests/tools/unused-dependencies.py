#!/usr/bin/env python3
"""Lists dependencies that no source of their package names: `make check` runs it.

A dependency counts as used if its crate name stands in a path (`name::`) or an import (`use name`). A development
dependency may be used by tests, examples and unit tests; any other must be used below `src`.
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIRECTORIES = {None: ["src"], "dev": ["src", "tests", "examples", "benches"], "build": ["build.rs"]}


def sources(package, kind):
    for name in DIRECTORIES[kind]:
        path = package / name
        for file in [path] if path.is_file() else path.rglob("*.rs"):
            yield file.read_text()


def is_used(package, dependency):
    crate = (dependency["rename"] or dependency["name"]).replace("-", "_")
    pattern = re.compile(rf"(?<![\w:]){crate}::|\buse {crate}\b|(?<![\w.]){crate}\s*=>")
    return any(pattern.search(text) for text in sources(package, dependency["kind"]))


def unused():
    command = ["cargo", "metadata", "--no-deps", "--locked", "--offline", "--format-version", "1"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    declared = set()
    for package in metadata["packages"]:
        manifest = pathlib.Path(package["manifest_path"])
        for dependency in package["dependencies"]:
            name = dependency["rename"] or dependency["name"]
            declared.add(name)
            if not is_used(manifest.parent, dependency):
                yield f"{manifest.relative_to(ROOT)}: {name}"
    shared = (ROOT / "Cargo.toml").read_text().split("[workspace.dependencies]\n")[1].split("\n[")[0]
    for name in re.findall(r"^([\w-]+)\s*=", shared, re.MULTILINE):
        if name not in declared:
            yield f"Cargo.toml: {name} in [workspace.dependencies]"


found = list(unused())
if found:
    sys.exit("unused dependencies:\n  " + "\n  ".join(found))
