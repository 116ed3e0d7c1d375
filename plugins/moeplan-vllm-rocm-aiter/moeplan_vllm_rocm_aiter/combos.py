"""The combinations of the recipes that this plugin renders, as data: options, environment, resources, probes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["combo", "combos", "not_rendered"]


@cache
def combos() -> Mapping[str, Any]:
    """Return the data of ``combos.json``; not to be changed."""
    found: dict[str, Any] = json.loads(files("moeplan_vllm_rocm_aiter").joinpath("combos.json").read_bytes())
    return found


def combo(profile: str) -> Mapping[str, Any] | None:
    """Return a profile's combination, None where it is none that is rendered."""
    found: Mapping[str, Any] | None = combos()["profiles"].get(profile)
    return found


def not_rendered() -> Mapping[str, str]:
    """Return why each other known profile is not rendered."""
    found: dict[str, str] = combos()["notRendered"]
    return found
