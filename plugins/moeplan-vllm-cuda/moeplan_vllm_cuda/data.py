"""The distribution's data files, read once each."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["read_data"]


@cache
def read_data(name: str) -> Any:
    """Return the JSON value in one of this distribution's data files, such as ``gpus.json``; not to be changed."""
    return json.loads(files("moeplan_vllm_cuda").joinpath(name).read_bytes())
