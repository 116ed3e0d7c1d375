"""The requests that are sent: their bodies by API, and their bytes on the wire."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from moeplan.collectors.endpoint_address import Address
from moeplan.errors import InputError, Issue, escape

__all__ = ["APIS", "Dialect", "api_key", "get_bytes", "post_bytes"]

APIS = {"chat": "/v1/chat/completions", "completions": "/v1/completions"}
"""Path of each API."""


@attrs.frozen
class Dialect:
    """How an engine is asked.

    Attributes:
        api: one of :data:`APIS`.
        model: the name the engine serves the model under.
        ignore_eos: ask for every token (an extension of vLLM and SGLang).
        continuous_usage: ask for the server's counts with every chunk (an extension of vLLM).
    """

    api: str
    model: str
    ignore_eos: bool = True
    continuous_usage: bool = True

    def body(self, prompt: str | Sequence[int], output_tokens: int) -> bytes:
        """Return the body of a streaming request; a prompt of token ids is the completions API's alone."""
        asked: dict[str, Any] = {"model": self.model, "max_tokens": output_tokens, "temperature": 0, "stream": True}
        if self.api == "chat":
            asked["messages"] = [{"role": "user", "content": prompt}]
        else:
            asked["prompt"] = prompt if isinstance(prompt, str) else list(prompt)
        asked["stream_options"] = {"include_usage": True}
        if self.continuous_usage:
            asked["stream_options"]["continuous_usage_stats"] = True
        if self.ignore_eos:
            asked["ignore_eos"] = True
        return json.dumps(asked, ensure_ascii=False).encode()


def api_key(variable: str | None) -> str | None:
    """Return the key that an environment variable holds; it is sent, and never shown or recorded.

    Raises:
        InputError: the variable is not set, or holds what no header can.
    """
    if variable is None:
        return None
    key = os.environ.get(variable, "")
    if not key or not key.isascii() or not key.isprintable():
        where, expected = f"--api-key-env {escape(variable, 60)}", "a variable that holds printable ASCII"
        raise InputError(Issue(where, "no_api_key", "no key in this environment variable", expected))
    return key


def post_bytes(address: Address, path: str, body: bytes, key: str | None) -> bytes:
    """Return a POST request with a JSON body."""
    extra = {
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Accept": "text/event-stream, application/json",
    }
    return _head("POST", address, path, extra, key) + body


def get_bytes(address: Address, path: str, key: str | None) -> bytes:
    """Return a GET request."""
    return _head("GET", address, path, {"Accept": "*/*"}, key)


def _head(method: str, address: Address, path: str, extra: Mapping[str, str], key: str | None) -> bytes:
    headers = {"Host": address.host_header, "User-Agent": "moeplan", "Accept-Encoding": "identity", **extra}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    lines = [f"{method} {address.path}{path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
