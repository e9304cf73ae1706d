#!/usr/bin/env python3
"""The crates, as a registry takes them: crates.py WORK DIST

`cargo install portway` must give a program with its console, without npm. A crate can contain only files below its
own directory, and the console and the migrations are beside the crates. So a copy of the tree is made in WORK, with
the two directories inside their crates, and packaged there.
"""

import pathlib
import re
import shutil
import subprocess
import sys

from facts import ROOT

CONSOLE = ROOT / "ui/dist"
# (file, what it says in the tree, what it says in the copy)
MOVES = [
    ("crates/http/src/console.rs", "../../ui/dist", "console"),
    ("crates/http/build.rs", "../../ui/dist", "console"),
    ("crates/store/src/postgres/schema.rs", "../../../../supabase/migrations/", "../../migrations/"),
]
# The root of the tree is a package too; its archive takes only what it is compiled from.
INCLUDE = 'include = ["/src", "/build.rs", "/COMMIT", "/packaging/portway.*", "/README.md", "/CHANGELOG.md", "/LICENSE"]\n'
NOT_IN_CRATES = ("adapters/", "bench/", "docs/", "examples/", "tests/", "ui/")


def copy_tree(work):
    shutil.rmtree(work, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    for name in listed.decode().split("\0"):
        source = ROOT / name
        if name and source.is_file() and not name.startswith(NOT_IN_CRATES):
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, work / name)
    # An archive has no history: this is what --version prints of it.
    format = ["git", "log", "-1", "--abbrev=9", "--format=%h %cs"]
    (work / "COMMIT").write_bytes(subprocess.run(format, cwd=ROOT, check=True, capture_output=True).stdout)
    shutil.copytree(CONSOLE, work / "crates/http/console")
    shutil.copytree(ROOT / "supabase/migrations", work / "crates/store/migrations")


def replace(path, old, new):
    text = path.read_text()
    if old not in text:
        sys.exit(f"{path}: does not contain {old!r}; update packaging/crates.py")
    path.write_text(text.replace(old, new))


def edit(work):
    for name, old, new in MOVES:
        replace(work / name, old, new)
    root = work / "Cargo.toml"
    text = root.read_text()
    version = re.search(r'\[workspace\.package\]\nversion = "(.+)"', text)[1]
    # A registry wants to know the version of each dependency. These belong together: no other will do.
    text = re.sub(r'(path = "crates/\w+")', rf'\1, version = "={version}"', text)
    text = text.replace('default-run = "portway"\n', f'default-run = "portway"\n{INCLUDE}')
    # Tests and examples are not in the archive.
    text = re.sub(r"\[\[(test|example)\]\]\n(?:.+\n)+", "", text)
    root.write_text(text.replace('members = ["bench", "crates/*"]', 'members = ["crates/*"]'))
    for manifest in work.glob("crates/*/Cargo.toml"):
        replace(manifest, "publish = false\n", "")
        shutil.copy2(ROOT / "LICENSE", manifest.parent)


def main():
    work, dist = map(pathlib.Path, sys.argv[1:])
    if not (CONSOLE / "index.html.gz").exists() and not (CONSOLE / "index.html").exists():
        sys.exit("the console is missing: run `make console`")
    tree = work.resolve() / "tree"
    copy_tree(tree)
    edit(tree)
    # Not verified here: `make test-release` installs the program from these archives.
    command = ["cargo", "package", "--quiet", "--workspace", "--no-verify", "--allow-dirty", "--offline"]
    subprocess.run([*command, "--target-dir", work.resolve() / "target"], cwd=tree, check=True)
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir(parents=True)
    for archive in sorted((work / "target/package").glob("*.crate")):
        shutil.copy2(archive, dist)


if __name__ == "__main__":
    main()
