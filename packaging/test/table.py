#!/usr/bin/env python3
"""The table of what was tried: table.py RESULTS DIST"""

import json
import os
import pathlib
import platform
import sys

PACKAGES = {
    "tarball": ("tarball", "`tar -xzf`, `portway demo`"),
    "deb": ("Debian package", "`apt-get install ./portway.deb`, `portway demo`"),
    "npm": ("npm", "`npm install -g portway`, `portway demo`"),
    "npx": ("npm, not installed", "`npx portway demo`"),
    "wheel": ("wheel", "`pip install portway`, `portway demo`"),
    "uvx": ("wheel, not installed", "`uvx portway demo`"),
    "service": ("Debian package, systemd", "`apt-get install ./portway.deb`, `portway add`, `portway call`"),
}

results = pathlib.Path(sys.argv[1])
# Of the files, which need not be that of the checkout.
commit = json.loads((pathlib.Path(sys.argv[2]) / "index.json").read_text())["commit"]
steps = {}
for line in results.read_text().splitlines():
    kind, step, result = line.split("\t")
    steps.setdefault(kind, {})[step] = result
lines = [
    "# What was tried",
    "",
    f"Written by `make test-release` on {platform.machine()} with {os.cpu_count()} cores, from commit "
    f"{commit}. Each package was installed in a new",
    "minimal Debian bookworm without a network. The time is from before the first command to the result of the",
    "first tool call; it contains no download.",
    "",
    "| Package | Commands | First call after | After `kill -9` of Portway | After an upgrade | After uninstalling |",
    "|---|---|---|---|---|---|",
]
for kind, (name, commands) in PACKAGES.items():
    if kind in steps:
        found = steps[kind]
        seconds = f"{int(found['first call']) / 1e9:.1f} s"
        cells = [name, commands, seconds, found["kill -9"], found.get("upgrade", "-"), found.get("uninstall", "-")]
        lines.append(f"| {' | '.join(cells)} |")
lines += ["", "| File | Result |", "|---|---|"]
for kind in [kind for kind in steps if kind not in PACKAGES]:
    lines.append(f"| {kind} | {'; '.join(steps[kind].values())} |")
print("\n".join(lines))
