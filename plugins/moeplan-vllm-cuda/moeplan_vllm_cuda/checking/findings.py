"""Findings on plans and sites, worded by the plugin's facts."""

from __future__ import annotations

from moeplan.facts.judge import Hit, finding_of
from moeplan.facts.values import Place
from moeplan.model.plugin import PluginFinding
from moeplan_vllm_cuda.knowledge import cuda_facts

__all__ = ["found"]


def found(fact: str, file: str, path: str, message: str, severity: str | None = None) -> PluginFinding:
    """Return a finding of a fact at a path of the plan or the site (``file``)."""
    made = finding_of(cuda_facts()[fact], Hit(Place(file, path), message, None, severity))
    assert made is not None  # without an engine's version only facts bound to one have no finding
    return made
