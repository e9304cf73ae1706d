#!/usr/bin/env python3
"""Runs the shell commands of the README files and the book.

    docs/commands.py BINARY [PAGE...]

The `sh` blocks of a page run in order, in one shell, in an empty directory with
an empty home. Each page has its own process and network namespace: it reaches
only its own loopback interface, and every process ends with it. `npx`, `uvx`
and `python3` run what `make tools` has installed. HTML comments before a block
control it:

    <!-- not run: REASON -->      skip the block
    <!-- background -->           run it in the background and wait for Portway
    <!-- file: NAME -->           write the block, of any language, to NAME
    <!-- setup: COMMANDS -->      run commands that the reader does not see
    <!-- setup in background: COMMANDS -->

With `--list`, the script prints the commands and runs nothing.
"""

import fcntl
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "tests/.tools"
STEP_LIMIT = 60
PAGE_LIMIT = 240
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

COMMENT = re.compile(r"<!--\s*(not run|background|file|setup in background|setup)\b:?\s*(.*?)\s*-->", re.S)
FENCE = re.compile(r"^( *)(`{3,})([^\n`]*)\n(.*?)^\1\2`*[ \t]*$", re.S | re.M)
SHELLS = {"sh", "bash", "shell", "console", "zsh"}

PRELUDE = """\
set -eEo pipefail
trap 'echo "exit code $? of: $BASH_COMMAND" >&2' ERR
step() { echo "$1" >&"$DOCS_STEPS"; }
ready() {
    for _ in $(seq 300); do
        if curl -q -fs -o /dev/null http://127.0.0.1:7420/readyz; then return 0; fi
        sleep 0.1
    done
    echo "Portway is not ready after 30 s; its output:" >&2
    cat "$1" >&2
    return 1
}
"""

# npx without a registry: the packages that `make tools` installed.
NPX = """\
#!/bin/sh
[ "$1" = -y ] && shift
case $1 in
    ?*@*) name=${1%@*} ;;
    *) name=$1 ;;
esac
shift
exec "TOOLS/node/node_modules/.bin/mcp-${name##*/}" "$@"
"""
UVX = '#!/bin/sh\nprogram=$1\nshift\nexec "TOOLS/python-2/bin/$program" "$@"\n'
PYTHON = '#!/bin/sh\nexec "TOOLS/python-2/bin/python" "$@"\n'


class BadPage(Exception):
    pass


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def steps(text):
    """The steps of a page: (kind, argument, code, line)."""
    found = []
    pending = None
    tokens = [(m.start(), m.end(), m) for m in FENCE.finditer(text)]
    inside = [(start, end) for start, end, _ in tokens]
    for match in COMMENT.finditer(text):
        if not any(start <= match.start() < end for start, end in inside):
            tokens.append((match.start(), match.end(), match))
    for start, _, match in sorted(tokens, key=lambda token: token[0]):
        line = line_of(text, start)
        if match.re is COMMENT:
            kind, argument = match.group(1), match.group(2)
            if kind.startswith("setup"):
                found.append((kind, "", argument, line))
                continue
            if pending:
                raise BadPage(f"line {line}: two comments before one block")
            if kind in ("not run", "file") and not argument:
                raise BadPage(f"line {line}: `{kind}` needs a text")
            pending = (kind, argument)
            continue
        indent, language, code = len(match.group(1)), match.group(3).strip(), match.group(4)
        code = "".join(row[min(indent, len(row) - len(row.lstrip(" "))):] for row in code.splitlines(True))
        if pending and pending[0] == "file":
            found.append(("file", pending[1], code, line))
        elif language == "sh":
            kind, argument = pending or ("run", "")
            found.append((kind, argument, code, line))
        elif pending:
            raise BadPage(f"line {line}: the comment `{pending[0]}` is not followed by an sh block")
        elif language in SHELLS:
            raise BadPage(f"line {line}: write `sh` instead of `{language}`, so that the block is run")
        pending = None
    if pending:
        raise BadPage(f"`{pending[0]}: {pending[1]}` is not followed by a block")
    return found


def script(page_steps, log):
    parts = [PRELUDE]
    for kind, argument, code, line in page_steps:
        if kind == "not run":
            continue
        parts.append(f"step {line}\n")
        if kind == "file":
            mark = "PORTWAY_END_OF_FILE"
            parts.append(f"mkdir -p \"$(dirname '{argument}')\"\ncat > '{argument}' <<'{mark}'\n{code}{mark}\n")
        elif "background" in kind:
            parts.append(f"( {code}\n) >'{log}' 2>&1 </dev/null &\nready '{log}'\n")
        else:
            # From a file descriptor of its own, so that no command reads the script.
            parts.append("{\n" + code.rstrip("\n") + "\n} </dev/null\n")
    return "".join(parts)


def executable(path, text):
    path.write_text(text.replace("TOOLS", str(TOOLS)))
    path.chmod(0o755)


def programs(directory, binary):
    directory.mkdir()
    (directory / "portway").symlink_to(binary)
    executable(directory / "npx", NPX)
    executable(directory / "uvx", UVX)
    executable(directory / "python3", PYTHON)


def inside(path):
    """The first process of the namespaces: brings loopback up and runs the script."""
    up = 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh22x", b"lo", up)
        fcntl.ioctl(control, 0x8914, request)  # SIOCSIFFLAGS
    shell = os.spawnvp(os.P_NOWAIT, "bash", ["bash", path])
    while True:  # It inherits orphans and must reap them.
        ended, status = os.wait()
        if ended == shell:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def isolated():
    words = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return words if os.geteuid() == 0 else words[:1] + ["--user", "--map-root-user"] + words[1:]


def run(page, page_steps, binary):
    """Runs a page; returns None, or what went wrong."""
    with tempfile.TemporaryDirectory(prefix="portway-docs-", ignore_cleanup_errors=True) as temporary:
        base = Path(temporary)
        for name in ("home", "work"):
            (base / name).mkdir()
        # A request that is refused must fail its command.
        (base / "home/.curlrc").write_text("fail-with-body\n")
        programs(base / "bin", binary)
        (base / "work/node_modules").symlink_to(TOOLS / "node/node_modules")
        (base / "script").write_text(script(page_steps, base / "background.log"))
        reader, writer = os.pipe()
        environment = {
            "PATH": f"{base / 'bin'}:{SYSTEM_PATH}",
            "HOME": str(base / "home"),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "DOCS_STEPS": str(writer),
        }
        with open(base / "output", "wb") as output:
            process = subprocess.Popen(
                isolated() + [sys.executable, __file__, "--inside", str(base / "script")],
                cwd=base / "work", env=environment, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True, pass_fds=[writer],
            )
            os.close(writer)
            line, problem = follow(process, reader)
        os.close(reader)
        if problem is None:
            return None
        text = (base / "output").read_text(errors="replace").splitlines()[-25:]
        return f"{page}:{line}: {problem}\n" + "\n".join("    " + row for row in text)


def follow(process, reader):
    """Waits for the script, step by step; returns the last line and the problem."""
    line, problem, buffer = "?", None, b""
    end = time.monotonic() + PAGE_LIMIT
    while True:
        ready, _, _ = select.select([reader], [], [], min(STEP_LIMIT, max(0, end - time.monotonic())))
        if not ready:
            problem = "not finished within the time limit"
            break
        data = os.read(reader, 4096)
        if not data:
            break
        buffer += data
        whole = buffer.split(b"\n")
        if len(whole) > 1:
            line, buffer = whole[-2].decode(), whole[-1]
    try:
        process.wait(timeout=5 if problem is None else 0)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return line, problem or "does not end"
    code = process.returncode
    return line, problem or (f"exit code {code}" if code else None)


def pages(names):
    if names:
        return [Path(name).resolve() for name in names]
    book = sorted((ROOT / "docs/src").rglob("*.md"))
    return [ROOT / "README.md", ROOT / "README.zh-CN.md"] + [page for page in book if page.name != "SUMMARY.md"]


def main(arguments):
    if arguments[:1] == ["--inside"]:
        inside(arguments[1])
    listing = arguments[:1] == ["--list"]
    if not arguments or arguments[0].startswith("-") and not listing:
        sys.exit(__doc__)
    binary = Path(arguments[0]).resolve()
    if not listing and not os.access(binary, os.X_OK):
        sys.exit(f"{binary} is not a program")
    if not listing and not (TOOLS / "python-2").is_dir():
        sys.exit("tests/.tools is missing: run `make tools` first")
    failed, total, skipped = [], 0, []
    for page in pages(arguments[1:]):
        name = page.relative_to(ROOT) if page.is_relative_to(ROOT) else page
        try:
            found = steps(page.read_text())
        except BadPage as problem:
            failed.append(f"{name}: {problem}")
            print(f"FAILED {name}")
            continue
        blocks = [step for step in found if step[0] in ("run", "background")]
        skipped += [(name, step) for step in found if step[0] == "not run"]
        if listing:
            print(*(f"{name}:{line}\n{code}" for _, _, code, line in blocks), sep="\n")
            continue
        if not blocks:
            continue
        began = time.monotonic()
        problem = run(name, found, binary)
        total += len(blocks)
        print(f"{'FAILED' if problem else 'ok    '} {name}: {len(blocks)} blocks, {time.monotonic() - began:.1f} s", flush=True)
        if problem:
            failed.append(problem)
    print(f"\n{total} blocks run, {len(skipped)} not run:")
    for name, (_, reason, _, line) in skipped:
        print(f"  {name}:{line}: {reason}")
    if failed:
        sys.exit("\n" + "\n\n".join(failed))


if __name__ == "__main__":
    main(sys.argv[1:])
