#!/usr/bin/env python3
"""SHA256SUMS, and index.json, which `portway upgrade --check` compares with: index.py DIST"""

import datetime
import hashlib
import json
import os
import pathlib
import sys

import facts

dist = pathlib.Path(sys.argv[1])
own = {"SHA256SUMS", "index.json", ".gitignore"}
files = {}
for path in sorted(dist.rglob("*")):
    if path.is_file() and path.name not in own:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        files[path.relative_to(dist).as_posix()] = {"size": path.stat().st_size, "sha256": digest}
moment = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
index = {
    "version": facts.program()["version"],
    "commit": os.environ["COMMIT"],
    "date": moment.strftime("%Y-%m-%d"),
    "url": os.environ["RELEASE_URL"],
    "files": files,
}
(dist / "index.json").write_text(json.dumps(index, indent=1) + "\n")
(dist / "SHA256SUMS").write_text("".join(f"{file['sha256']}  {name}\n" for name, file in files.items()))
