"""The packages of others that the program contains: Rust crates, and the npm packages of the console."""

import base64
import json
import re
import subprocess

from facts import ROOT


def rust_crates(target):
    """The crates that the program is compiled from; those of tests and build scripts are left out."""
    command = ["cargo", "metadata", "--locked", "--offline", "--format-version", "1", "--filter-platform", target]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting, found = [metadata["resolve"]["root"]], {}
    while waiting:
        id = waiting.pop()
        if id in found:
            continue
        linked = [
            dependency["pkg"]
            for dependency in nodes[id]["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        ]
        found[id] = packages[id] | {"linked": linked}
        waiting += linked
    return metadata["resolve"]["root"], found


def crate_checksums():
    """SHA-256 of each crate's archive, by name and version."""
    lock = (ROOT / "Cargo.lock").read_text()
    pattern = r'name = "(.+)"\nversion = "(.+)"\nsource = ".+"\nchecksum = "(.+)"'
    return {(name, version): sum for name, version, sum in re.findall(pattern, lock)}


def console_packages():
    """The npm packages that the console's files are made of."""
    lock = json.loads((ROOT / "ui/package-lock.json").read_text())
    for path, package in lock["packages"].items():
        if path and not package.get("dev") and not package.get("devOptional"):
            name = path.rpartition("node_modules/")[2]
            sum = base64.b64decode(package["integrity"].removeprefix("sha512-")).hex()
            yield {
                "name": name,
                "version": package["version"],
                "license": package["license"],
                "sha512": sum,
                "directory": ROOT / "ui" / path,
            }
