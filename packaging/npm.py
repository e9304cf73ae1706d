#!/usr/bin/env python3
"""The npm packages: npm.py SHARE DIST TARGET=BINARY...

`portway` has a launcher and names one package for each platform as optional; npm installs the one that fits.
Neither has an install script: many people do not allow them.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import facts

HERE = pathlib.Path(__file__).parent


def manifest(program, name, **more):
    common = {
        "name": name,
        "version": program["version"],
        "description": program["description"],
        "license": program["license"],
        "keywords": program["keywords"],
    }
    if program["homepage"]:
        common["homepage"] = program["homepage"]
    return common | more


def pack(package, files, dist):
    """`files` are (name, source, mode)."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "package.json").write_text(json.dumps(package, indent=2) + "\n")
        for name, source, mode in files:
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            shutil.copyfile(source, path)
            path.chmod(mode)
        command = ["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", dist.resolve()]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def platform_name(target):
    facts_of_target = facts.TARGETS[target]
    return f"@portway/{facts_of_target['npm_os']}-{facts_of_target['npm_cpu']}"


def main():
    share, dist = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    binaries = dict(argument.split("=", 1) for argument in sys.argv[3:])
    program = facts.program()
    texts = [(name, share / name, 0o644) for name in ("LICENSE", "THIRD-PARTY.txt")]
    for target, binary in binaries.items():
        named = facts.TARGETS[target]
        package = manifest(
            program,
            platform_name(target),
            os=[named["npm_os"]],
            cpu=[named["npm_cpu"]],
            libc=["glibc"],
            preferUnplugged=True,
        )
        pack(package, [("bin/portway", pathlib.Path(binary), 0o755), *texts], dist)
    package = manifest(
        program,
        program["name"],
        bin={"portway": "bin/portway"},
        optionalDependencies={platform_name(target): program["version"] for target in binaries},
    )
    pack(package, [("bin/portway", HERE / "npm/portway", 0o755), ("README.md", share / "README.md", 0o644), *texts], dist)


if __name__ == "__main__":
    os.umask(0o022)
    main()
