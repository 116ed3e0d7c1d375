"""Public recipes as data: which variant a model's name means, what it needs, which strategies it offers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import attrs
from moeplan_vllm.families import name_of

from moeplan_vllm_cuda.data import read_data

__all__ = ["Recipe", "Variant", "find_recipe", "find_variant", "parsers_of_others", "recipe_source"]


@attrs.frozen
class Variant:
    """One checkpoint of a recipe.

    Attributes:
        model: its hub id.
        precision: ``fp8``, ``nvfp4``, ``mxfp4``, ``bf16``, ``int4`` …
        least_gigabytes: the least memory of all GPUs together, in GB.
        tensor_cap: the largest tensor-parallel size without expert parallel; None: no cap.
        hardware: the only hardware it is for; empty: any.
        minimum_version: the first release for it, where it differs from the recipe's.
    """

    model: str
    precision: str
    least_gigabytes: int
    tensor_cap: int | None = None
    hardware: tuple[str, ...] = ()
    minimum_version: str | None = None


@attrs.frozen
class Recipe:
    """One recipe: a model with its variants.

    Attributes:
        model: the hub id it is filed under.
        file: its file in the recipes' repository.
        minimum_version: the first release of vLLM for it; ``nightly`` where none had it.
        hardware: status by hardware (``verified``, ``unsupported``).
        strategies: ids of the strategies it offers: this plugin's profiles.
        strategy_gpus: the least GPUs by strategy, or by hardware.
        strategy_hardware: status by strategy and hardware.
        tool_parser: its tool-call parser; likewise ``reasoning_parser``.
    """

    model: str
    file: str
    minimum_version: str
    hardware: Mapping[str, str] = attrs.field(hash=False)
    strategies: tuple[str, ...]
    variants: tuple[Variant, ...]
    strategy_gpus: Mapping[str, int] = attrs.field(factory=dict, hash=False)
    strategy_hardware: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict, hash=False)
    tool_parser: str | None = None
    reasoning_parser: str | None = None


@cache
def recipe_source() -> str:
    """Return where the recipes were read."""
    return str(read_data("recipes.json")["source"])


@cache
def _recipes() -> tuple[Recipe, ...]:
    return tuple(_recipe(row) for row in read_data("recipes.json")["recipes"])


def _recipe(row: Mapping[str, Any]) -> Recipe:
    return Recipe(
        model=row["recipe"],
        file=row["file"],
        minimum_version=row["minimumVersion"],
        hardware=row["hardware"],
        strategies=tuple(row["strategies"]),
        variants=tuple(_variant(one) for one in row["variants"]),
        strategy_gpus=row.get("strategyGpus", {}),
        strategy_hardware=row.get("strategyHardware", {}),
        tool_parser=row.get("toolParser"),
        reasoning_parser=row.get("reasoningParser"),
    )


def _variant(row: Mapping[str, Any]) -> Variant:
    return Variant(
        row["model"],
        row["precision"],
        row["leastGb"],
        row.get("tensorCap"),
        tuple(row.get("hardware", ())),
        row.get("minimumVersion"),
    )


@cache
def find_variant(reference: str) -> tuple[Recipe, Variant] | None:
    """Return the recipe and variant of a model, by its hub id or by the last part of its name; never a guess.

    A name that two variants of different precision bear gives None.
    """
    name = name_of(reference)
    found = [(one, each) for one in _recipes() for each in one.variants if name_of(each.model) == name]
    if not found:
        found = [(one, one.variants[0]) for one in _recipes() if name_of(one.model) == name]
    if len({each.precision for _, each in found}) > 1:
        return None
    return found[0] if found else None


def find_recipe(reference: str) -> Recipe | None:
    """Return the recipe of a model, or None."""
    found = find_variant(reference)
    return None if found is None else found[0]


@cache
def parsers_of_others(kind: str) -> frozenset[str]:
    """Return every parser of a kind (``tool`` or ``reasoning``) that some recipe names."""
    named = {one.tool_parser if kind == "tool" else one.reasoning_parser for one in _recipes()}
    return frozenset(parser for parser in named if parser is not None)
