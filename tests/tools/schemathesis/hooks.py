"""What no schema can say about a valid request, and what must not be tried for real."""

import itertools
import json

import schemathesis

FUTURE = "2099-01-01T00:00:00Z"
counter = itertools.count()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Bodies name programs and addresses: none of those made up here is started or asked."""
    valid = not case.meta or case.meta.generation.mode.is_positive
    body = case.body
    if isinstance(body, dict):
        if isinstance(body.get("command"), str) and body["command"].strip():
            body["command"] = "true"
        if isinstance(body.get("command"), list) and valid:
            body["command"] = ["true", *body["command"][1:]]
        if isinstance(body.get("url"), str) and (valid or body["url"].startswith("http")):
            body["url"] = "http://127.0.0.1:9/mcp"
        if valid and isinstance(body.get("file"), str):
            # Text of a file that is no JSON is refused as such.
            body["file"] = json.dumps({"mcpServers": {}})
        if valid and isinstance(body.get("expires_at"), str):
            body["expires_at"] = FUTURE
        if valid and "/api/v1/" in case.path and ("server" in body or "exposes" in body):
            # What is not there is refused unless it is asked for.
            body["allow_missing"] = True
        if valid and "/api/v1/tools" in case.path and isinstance(body.get("name"), str):
            # Two bound tools of one name are refused.
            body["name"] = f"{body['name'][:100]}{next(counter)}"
    headers = case.headers or {}
    if valid and "Idempotency-Key" in headers:
        # The same one for another body is refused.
        headers["Idempotency-Key"] = f"{headers['Idempotency-Key'][:200]}{next(counter)}"
