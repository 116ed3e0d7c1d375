"""The facts of vLLM that hold on every accelerator, and how a distribution's fact files are read."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from moeplan.facts.model import FactSet, load_facts

__all__ = ["ORIGIN", "read_fact_files", "vllm_facts"]

ORIGIN = "moeplan-vllm"


@cache
def read_fact_files(package: str, origin: str) -> FactSet:
    """Return the facts in all JSON files of a package, in the order of the files' names.

    Args:
        package: the package that holds the files, such as ``moeplan_vllm.facts``.
        origin: the distribution whose facts they are.

    Raises:
        InputError: a file holds a malformed fact, or two hold the same id.
    """
    names = sorted(entry.name for entry in files(package).iterdir() if entry.name.endswith(".json"))
    sets = [load_facts(files(package).joinpath(name).read_bytes(), origin) for name in names]
    return FactSet(origin, ()).joined(*sets)


def vllm_facts() -> FactSet:
    """Return the facts of vLLM itself; those of an accelerator stand in its plugin."""
    return read_fact_files("moeplan_vllm.facts", ORIGIN)
