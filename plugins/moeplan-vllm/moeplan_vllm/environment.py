"""The environment variables that vLLM itself reads, release by release, and what took the place of those removed."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache

import attrs

from moeplan.manifests.versions import VersionRange, parse_range
from moeplan_vllm.data import read_data

__all__ = ["Variable", "find_variable", "near_variables", "variables"]


@attrs.frozen
class Variable:
    """One environment variable.

    Attributes:
        name: its name.
        versions: the releases that read it; for one of a build alone, every version of that build.
        instead: what took its place where it was removed: a variable, or an option of ``vllm serve``.
        build: the build outside the releases that alone reads it.
    """

    name: str
    versions: VersionRange
    instead: str | None = None
    build: str | None = None


@cache
def variables() -> dict[str, Variable]:
    """Return every variable by its name.

    Source: vLLM wheels 0.10.2 to 0.33.0, ``environment_variables`` in ``vllm/envs.py``.
    """
    return {row["name"]: _variable(row) for row in read_data("environment.json")["variables"]}


def find_variable(name: str) -> Variable | None:
    """Return the variable of a name; None where no release read has it."""
    return variables().get(name)


def near_variables(name: str) -> tuple[str, ...]:
    """Return up to three names like an unknown one, the likest first."""
    return tuple(get_close_matches(name[:80], list(variables()), 3, 0.8))


def _variable(row: dict[str, str]) -> Variable:
    return Variable(row["name"], parse_range(row.get("versions", "")), row.get("instead"), row.get("build"))
