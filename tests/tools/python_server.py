"""A server made with the official Python SDK, version 1 or 2, whichever is installed.

python_server.py [--http PORT | --sse PORT]; stdio without a port. Over HTTP it prints
`listening on http://127.0.0.1:PORT/mcp` (or /sse; port 0 picks one) and ends with its
parent process. SDK 1 speaks the legacy era only, SDK 2 both.
"""

import argparse
import os
import socket
import threading
import time

try:
    from mcp.server.mcpserver import Context, MCPServer
except ModuleNotFoundError:
    from mcp.server.fastmcp import Context
    from mcp.server.fastmcp import FastMCP as MCPServer

server = MCPServer("python-server")


@server.tool()
def echo(text: str) -> str:
    """Repeats a text"""
    return text


@server.tool()
def add(a: float, b: float) -> dict[str, float]:
    """Adds two numbers"""
    return {"sum": a + b}


@server.tool()
async def progress(steps: int, ctx: Context) -> str:
    """Reports progress step by step"""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps)
    return f"{steps} steps"


@server.tool()
def fail() -> str:
    """Always fails"""
    raise ValueError("failed as told")


@server.resource("python://text")
def text() -> str:
    """A fixed text"""
    return "a fixed text"


@server.resource("python://item/{id}")
def item(id: str) -> str:
    """A text per id"""
    return f"item {id}"


@server.prompt()
def compose(topic: str) -> str:
    """A prompt with an argument"""
    return f"Write about {topic}."


def end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.25)
    os._exit(0)


def serve(app, port: int, path: str) -> None:
    import uvicorn

    listener = socket.create_server(("127.0.0.1", port))
    threading.Thread(target=end_with_parent, args=(os.getppid(),), daemon=True).start()
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}{path}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=int, metavar="PORT")
    parser.add_argument("--sse", type=int, metavar="PORT")
    options = parser.parse_args()
    if options.http is not None:
        serve(server.streamable_http_app(), options.http, "/mcp")
    elif options.sse is not None:
        serve(server.sse_app(), options.sse, "/sse")
    else:
        server.run()


if __name__ == "__main__":
    main()
