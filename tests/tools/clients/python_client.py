"""A client made with the official Python SDK, version 1 or 2, whichever is installed.

python_client.py URL --era legacy|modern --transport http|sse --prefix NAMES
python_client.py --era legacy|modern --transport stdio --prefix NAMES -- COMMAND ARGUMENT...

Lists tools, calls one, answers one elicitation, and prints what it saw as one line of JSON.
SDK 1 speaks the legacy era only.
"""

import argparse
import asyncio
import json
import os
from contextlib import AsyncExitStack

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

LIMIT = 60
ELICITED = "test_elicitation"
ECHO = "test_echo"


class Seen:
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.progress: list[float] = []

    async def elicit(self, _context, params) -> types.ElicitResult:
        self.asked.append(params.message)
        return types.ElicitResult(action="accept", content={"username": "ada", "email": "ada@example.org"})

    async def step(self, progress: float, _total: float | None, _message: str | None) -> None:
        self.progress.append(progress)


def field(value, *names):
    """SDK 1 spells as the wire does, SDK 2 as Python does."""
    return next(getattr(value, name) for name in names if hasattr(value, name))


async def connect(stack: AsyncExitStack, options, seen: Seen):
    """The connected client and the version it speaks."""
    where = options.url[0]
    open_transport = sse_client if options.transport == "sse" else streamable_http_client
    if options.transport == "stdio":
        where = StdioServerParameters(command=where, args=options.url[1:], env=dict(os.environ))
        open_transport = stdio_client
    if options.transport != "sse":
        try:
            from mcp import Client
        except ImportError:
            pass
        else:
            mode = "legacy" if options.era == "legacy" else "2026-07-28"
            server = stdio_client(where) if options.transport == "stdio" else where
            client = await stack.enter_async_context(Client(server, mode=mode, elicitation_callback=seen.elicit))
            return client, client.protocol_version
    streams = await stack.enter_async_context(open_transport(where))
    session = await stack.enter_async_context(ClientSession(streams[0], streams[1], elicitation_callback=seen.elicit))
    started = await session.initialize()
    return session, field(started, "protocolVersion", "protocol_version")


async def ask(options) -> dict:
    seen = Seen()
    async with AsyncExitStack() as stack:
        client, version = await connect(stack, options, seen)
        tools, cursor = [], None
        while True:
            page = await client.list_tools(**({"cursor": cursor} if cursor else {}))
            tools += [tool.name for tool in page.tools]
            cursor = field(page, "nextCursor", "next_cursor")
            if not cursor:
                break
        echo = await client.call_tool(options.prefix + ECHO, {"message": "ü from Python"})
        await client.call_tool(options.prefix + "test_tool_with_progress", {}, progress_callback=seen.step)
        elicited = await client.call_tool(options.prefix + ELICITED, {"message": "Who, Python?"})
        failed = await client.call_tool(options.prefix + "test_error_handling", {})
        return {
            "version": str(version),
            "tools": sorted(tools),
            "echo": echo.content[0].text,
            "structured": field(echo, "structuredContent", "structured_content"),
            "progress": seen.progress,
            "asked": seen.asked,
            "elicited": elicited.content[0].text,
            "failed": [field(failed, "isError", "is_error"), failed.content[0].text],
        }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url", nargs="+")
    parser.add_argument("--era", default="legacy")
    parser.add_argument("--transport", default="http")
    parser.add_argument("--prefix", default="")
    options = parser.parse_args()
    print(json.dumps(asyncio.run(asyncio.wait_for(ask(options), LIMIT))))


if __name__ == "__main__":
    main()
