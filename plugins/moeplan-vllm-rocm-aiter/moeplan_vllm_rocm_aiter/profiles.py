"""The combinations, and how much is known of each: data with sources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from moeplan.model.plugin import FactSource, Profile, ProfileAim
from moeplan_vllm_rocm_aiter.render_needs import needs_of

__all__ = ["profiles"]

_MODELS = ("kimi-k3",)
"""Every combination is one of Kimi-K3's recipes (R-CHO-013)."""
_GPUS_A_NODE = 8
"""Each role takes a node's GPUs, all of them (R-ARG-004)."""


@cache
def profiles() -> tuple[Profile, ...]:
    """Return every profile. The validation tables of the recipes are the sources of its status."""
    rows = json.loads(files("moeplan_vllm_rocm_aiter").joinpath("profiles.json").read_bytes())
    return tuple(
        Profile(
            id=row["id"],
            title=row["title"],
            status=row["status"],
            statement=row["statement"],
            sources=_sources(row),
            site_needs=needs_of(row["id"]),
            nodes=row["nodes"],
            accelerators=row["nodes"] * _GPUS_A_NODE,
            speculation=row["speculation"],
            models=_MODELS,
            aims=tuple(
                ProfileAim(aim=one["aim"], suits=one["suits"], statement=one["statement"], sources=_sources(one))
                for one in row.get("aims", ())
            ),
        )
        for row in rows
    )


def _sources(row: Mapping[str, Any]) -> tuple[FactSource, ...]:
    return tuple(FactSource(one["source"], one.get("locator")) for one in row["sources"])
