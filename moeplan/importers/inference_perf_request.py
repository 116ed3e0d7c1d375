"""What one request of inference-perf's asked for, and whether its stream told of an error, where the texts are kept."""

from __future__ import annotations

import json
from typing import Any

import attrs

__all__ = ["AskedFor", "asked_for", "told_of_error"]

_MOST_TOKENS = 10**9
_UNKNOWN = (None, None, None, None)


@attrs.frozen
class AskedFor:
    """Each is None where the request's text does not tell."""

    tokens: int | None
    model: str | None
    endpoint: str | None
    ignore_eos: bool | None


def asked_for(request: Any) -> AskedFor:
    """Return what a request's own JSON text asks for; nothing where the text is cut, empty or no JSON object."""
    try:
        body = json.loads(request) if type(request) is str and request.startswith("{") else None
    except (ValueError, RecursionError):
        body = None
    if type(body) is not dict:
        return AskedFor(*_UNKNOWN)
    tokens = body.get("max_completion_tokens", body.get("max_tokens"))
    model = body.get("model")
    return AskedFor(
        tokens=tokens if type(tokens) is int and 0 < tokens <= _MOST_TOKENS else None,
        model=model if type(model) is str and 0 < len(model) <= 200 and model.isprintable() else None,
        endpoint="chat" if "messages" in body else "completion" if "prompt" in body else None,
        ignore_eos=body.get("ignore_eos") is True,
    )


def told_of_error(response: Any) -> bool:
    """Return whether an event of the stream is an error. A cut text may hide one."""
    if type(response) is not str:
        return False
    return any(_is_error(line[5:].strip()) for line in response.split("\n") if line.startswith("data:"))


def _is_error(event: str) -> bool:
    if '"error"' not in event:
        return False
    try:
        body = json.loads(event)
    except (ValueError, RecursionError):
        # The text is cut within the event.
        return event.startswith('{"error"')
    return type(body) is dict and body.get("error") is not None
