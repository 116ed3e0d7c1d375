"""The combinations, and how much is known of each: data with sources."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from moeplan.model.plugin import FactSource, Profile
from moeplan_vllm_rocm_aiter.render_needs import needs_of

__all__ = ["profiles"]


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
            sources=tuple(FactSource(one["source"], one.get("locator")) for one in row["sources"]),
            site_needs=needs_of(row["id"]),
        )
        for row in rows
    )
