#!/usr/bin/env python3
"""A wheel that puts the program on the PATH: wheel.py TARGET BINARY SHARE DIST

Written here because it needs no compiler: a wheel is a zip file with four text files. There is no Python module,
and there are no manual pages: pip leaves their empty directories behind.
"""

import base64
import hashlib
import os
import pathlib
import sys
import time
import zipfile

import facts


def metadata(program, readme):
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {program['name']}",
        f"Version: {program['version']}",
        f"Summary: {program['description']}",
        f"License: {program['license']}",
        f"Keywords: {','.join(program['keywords'])}",
        "Classifier: Environment :: Console",
        "Classifier: License :: OSI Approved :: Apache Software License",
        "Classifier: Operating System :: POSIX :: Linux",
        "Classifier: Programming Language :: Rust",
        "Requires-Python: >=3.7",
        "Description-Content-Type: text/markdown",
    ]
    if program["homepage"]:
        lines.append(f"Home-page: {program['homepage']}")
    return "\n".join(lines) + "\n\n" + readme


def digest(content):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def write(path, files, information):
    """`files` are (name, content, mode); the record of them comes last, as pip wants it."""
    record = "".join(f"{name},{digest(content)},{len(content)}\n" for name, content, _ in files)
    files = [*files, (f"{information}/RECORD", f"{record}{information}/RECORD,,\n".encode(), 0o644)]
    # Not before 1980: the format cannot say it.
    moment = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content, mode in files:
            entry = zipfile.ZipInfo(name, moment)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)


def main():
    target, binary, share, dist = sys.argv[1], *map(pathlib.Path, sys.argv[2:])
    program = facts.program()
    platforms = facts.wheel_platforms(target, binary)
    stem = f"{program['name']}-{program['version']}"
    information = f"{stem}.dist-info"
    tags = "".join(f"Tag: py3-none-{platform}\n" for platform in platforms)
    wheel = f"Wheel-Version: 1.0\nGenerator: portway\nRoot-Is-Purelib: false\n{tags}"
    files = [
        (f"{stem}.data/scripts/portway", binary.read_bytes(), 0o755),
        (f"{information}/METADATA", metadata(program, (share / "README.md").read_text()).encode(), 0o644),
        (f"{information}/WHEEL", wheel.encode(), 0o644),
        (f"{information}/LICENSE", (share / "LICENSE").read_bytes(), 0o644),
        (f"{information}/THIRD-PARTY.txt", (share / "THIRD-PARTY.txt").read_bytes(), 0o644),
    ]
    write(dist / f"{stem}-py3-none-{'.'.join(platforms)}.whl", files, information)


if __name__ == "__main__":
    main()
