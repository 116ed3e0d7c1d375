"""The child process in which one hook of one plugin is called, so that a deadline can end it.

The request comes as JSON on stdin and the answer goes as JSON to what was stdout; nothing is ever pickled. What the
plugin prints goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

__all__ = ["BOOT", "answer", "main"]

BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.stdin.buffer.readline()); "
    "from moeplan.hooks.child import main; main()"
)
"""The child's program. Its first line of input is the parent's ``sys.path``, so that both find the same plugins."""


def answer(request: dict[str, Any]) -> bytes:
    """Return the answer to a request as JSON: ``{"value": …, "hooks": […]}`` or ``{"code": …, "message": …}``."""
    from moeplan.hooks.calling import Fault, load_plugin

    try:
        plugin = load_plugin(request["name"], request["value"])
        value = plugin.call(request["hook"], request["arguments"])
        return _encoded({"value": value, "hooks": list(plugin.hooks)})
    except Fault as fault:
        return _encoded({"code": fault.code, "message": fault.message})


def _encoded(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode("ascii")


def main() -> None:
    """Answer the request on stdin and exit without running what the plugin left for the exit."""
    request = json.loads(sys.stdin.buffer.read())
    out = os.dup(1)
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    data = answer(request)
    with os.fdopen(out, "wb") as stream:
        stream.write(data)
    os._exit(0)
