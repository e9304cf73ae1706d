#!/usr/bin/env python3
"""Compares the Chinese pages with the English ones.

    docs/compare.py

Both must have the same headings (their levels), the same code blocks (without
comments), the same tables (rows, columns and code in the cells), the same
pictures and the same links. The words are not compared.
"""

import re
import sys
from difflib import unified_diff
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "docs/src"

SHELL_COMMENT = re.compile(r"(^|\s+)#\s.*$")
LINK = re.compile(r"(!?)\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`[^`]+`")
COMMENT = re.compile(r"<!--\s*(not run|background|file|setup[^:]*)")


def pairs():
    yield ROOT / "README.md", ROOT / "README.zh-CN.md"
    for page in sorted((BOOK / "zh-CN").glob("*.md")):
        yield BOOK / page.name, page


def destination(page, target):
    """Where a link leads, the same for both languages; headings have other names."""
    target = target.split("#")[0]
    if not target or "://" in target:
        return target
    path = (page.parent / target).resolve()
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else target
    return name.replace("README.zh-CN.md", "README.md").replace("docs/src/zh-CN/", "docs/src/")


def outline(page):
    """What both languages share, a line each."""
    rows, fence = [], None
    for line in page.read_text().splitlines():
        text = line.strip()
        if text.startswith("```"):
            rows.append(text if fence is None else "```")
            fence = text[3:] if fence is None else None
        elif fence is not None:
            code = SHELL_COMMENT.sub("", line) if fence in ("sh", "json") else line
            rows.append("    " + code.rstrip())
        elif text.startswith("#"):
            rows.append("heading " + text.split(" ")[0])
        elif text.startswith("|"):
            cells = text.strip("|").split("|")
            rows.append("row " + " | ".join(" ".join(CODE.findall(cell)) for cell in cells))
        elif COMMENT.match(text):
            rows.append("comment " + COMMENT.match(text).group(1))
        for picture, target in LINK.findall(line) if fence is None else []:
            where = destination(page, target)
            # Each language links to the other.
            if where != "README.md" and where != page.relative_to(ROOT).as_posix():
                rows.append(("picture " if picture else "link ") + where)
    return rows


def main():
    problems = []
    for english, chinese in pairs():
        if not english.exists():
            problems.append(f"{chinese.relative_to(ROOT)}: there is no English page")
            continue
        names = [str(page.relative_to(ROOT)) for page in (english, chinese)]
        difference = list(unified_diff(outline(english), outline(chinese), *names, lineterm="", n=1))
        problems += ["\n".join(difference)] if difference else []
    if problems:
        sys.exit("\n\n".join(problems))
    print(f"translations: {len(list(pairs()))} pages in step")


if __name__ == "__main__":
    main()
