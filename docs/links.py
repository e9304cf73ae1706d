#!/usr/bin/env python3
"""Checks the links of the documentation, without a network.

    docs/links.py              the Markdown files
    docs/links.py --html DIR   the pages of a built book

A link must lead to a file that exists and to a heading in it. Pages of the book
link only to pages of the book, and the summary lists every page. Links to other
sites are not followed.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "docs/src"

FENCE = re.compile(r"^ *(`{3,}).*?^ *\1`*[ \t]*$", re.S | re.M)
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.S)
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^()\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.M)


def slug(heading):
    """The anchor of a heading, as mdBook and GitHub make it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    kept = "".join(c if c.isalnum() or c in "_-" else "-" if c.isspace() else "" for c in text.strip())
    return kept.lower()


def anchors(path):
    """The anchors of a page; a repeated heading has a number."""
    seen, found = {}, set()
    for heading in HEADING.findall(FENCE.sub("", path.read_text())):
        name = slug(heading)
        count = seen.get(name, 0)
        found.add(f"{name}-{count}" if count else name)
        seen[name] = count + 1
    return found


def links(path):
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    text = CODE.sub(blank, FENCE.sub(blank, path.read_text()))
    for match in LINK.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.group(1)


def markdown():
    problems = []
    pages = sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md"))
    pages = [page for page in pages if "templates" not in page.parts]
    for page in pages:
        name = page.relative_to(ROOT)
        for line, target in links(page):
            url = urlsplit(target)
            if url.scheme or url.netloc:
                continue
            file = (page.parent / unquote(url.path)).resolve() if url.path else page
            if not file.exists():
                problems.append(f"{name}:{line}: {target}: no such file")
            elif BOOK in page.parents and not file.is_relative_to(BOOK):
                problems.append(f"{name}:{line}: {target}: is outside the book")
            elif url.fragment and file.suffix == ".md" and unquote(url.fragment) not in anchors(file):
                problems.append(f"{name}:{line}: {target}: no such heading")
    listed = {(BOOK / target).resolve() for _, target in links(BOOK / "SUMMARY.md")}
    for page in sorted(BOOK.rglob("*.md")):
        if page.name != "SUMMARY.md" and page not in listed:
            problems.append(f"{page.relative_to(ROOT)}: is not in SUMMARY.md")
    return len(pages), problems


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.targets, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.targets.append(value)
            elif name in ("id", "name") and value:
                self.ids.add(value)


def html(directory):
    directory = directory.resolve()
    pages = {path: Page(path.read_text()) for path in sorted(directory.rglob("*.html"))}
    problems = []
    for path, page in pages.items():
        # Its addresses are those of the site's root.
        if path.name in ("404.html", "toc.html"):
            continue
        for target in page.targets:
            url = urlsplit(target)
            if url.scheme or url.netloc:
                continue
            file = (path.parent / unquote(url.path)).resolve() if url.path else path
            file = file / "index.html" if file.is_dir() else file
            if not file.exists():
                problems.append(f"{path.relative_to(directory)}: {target}: no such file")
            elif url.fragment and file in pages and unquote(url.fragment) not in pages[file].ids:
                problems.append(f"{path.relative_to(directory)}: {target}: no such heading")
    return len(pages), problems


def main(arguments):
    if arguments[:1] == ["--html"] and len(arguments) == 2:
        count, problems = html(Path(arguments[1]))
    elif not arguments:
        count, problems = markdown()
    else:
        sys.exit(__doc__)
    if problems:
        sys.exit("\n".join(sorted(set(problems))))
    print(f"links: {count} pages, all right")


if __name__ == "__main__":
    main(sys.argv[1:])
