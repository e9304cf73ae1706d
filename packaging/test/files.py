#!/usr/bin/env python3
"""Checks the files of a release that are not installed here: files.py DIST

Prints "KIND<tab>STEP<tab>RESULT" for each.
"""

import base64
import hashlib
import json
import pathlib
import re
import sys
import zipfile

dist = pathlib.Path(sys.argv[1])


def report(kind, result):
    print(f"{kind}\tfile\t{result}")


def check_formula():
    text = (dist / "portway.rb").read_text()
    sources = re.findall(r'url "(.+)"\n\s+sha256 "([0-9a-f]{64})"', text)
    assert sources, "the formula has no source"
    for url, digest in sources:
        file = dist / url.rpartition("/")[2]
        assert hashlib.sha256(file.read_bytes()).hexdigest() == digest, f"{url}: another digest"
    # Every block is closed; there is no Ruby here that would say so.
    opened = len(re.findall(r"^\s*(?:class|def) |\bdo$", text, re.MULTILINE))
    assert opened == len(re.findall(r"^\s*end$", text, re.MULTILINE)), "the formula has an open block"
    report("Homebrew formula", f"{len(sources)} source, digest right; not run: no Homebrew here")


def check_bill(path):
    bill = json.loads(path.read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    references = [component["bom-ref"] for component in bill["components"]]
    assert len(references) == len(set(references)), "a component is listed twice"
    known = {*references, bill["metadata"]["component"]["bom-ref"]}
    for entry in bill["dependencies"]:
        assert {entry["ref"], *entry["dependsOn"]} <= known, f"{entry['ref']}: unknown dependency"
    unlicensed = [component["name"] for component in bill["components"] if not component.get("licenses")]
    assert not unlicensed, f"no licence: {unlicensed}"
    report("SBOM", f"CycloneDX 1.6, {len(references)} components, each with licence and purl")


def check_wheel(path):
    with zipfile.ZipFile(path) as archive:
        record = next(name for name in archive.namelist() if name.endswith("/RECORD"))
        lines = dict(line.split(",", 1) for line in archive.read(record).decode().splitlines())
        assert set(lines) == set(archive.namelist()), "RECORD and files differ"
        for name, rest in lines.items():
            if name != record:
                digest = base64.urlsafe_b64encode(hashlib.sha256(archive.read(name)).digest()).rstrip(b"=").decode()
                assert rest.startswith(f"sha256={digest},"), f"{name}: another digest"


check_formula()
for path in dist.glob("*.cdx.json"):
    check_bill(path)
for path in dist.glob("*.whl"):
    check_wheel(path)
