"""Which of the plugin's profiles the engines of a manifest or script are."""

from __future__ import annotations

from moeplan_vllm.rules.derived import is_paired
from moeplan_vllm.rules.placing import is_multi_node
from moeplan_vllm.rules.reading import count, flag

from moeplan.facts.launches import Scene, Subject

__all__ = ["profile_of"]


def profile_of(scene: Scene) -> str | None:
    """Return the profile that a scene's engines are, or None where they differ or are none of them."""
    found = {_profile(one) for one in scene.engines()}
    return found.pop() if len(found) == 1 else None


def _profile(subject: Subject) -> str | None:
    if is_paired(subject):
        return "pd_cluster"
    several = is_multi_node(subject)
    if several is None or is_paired(subject) is None:
        return None
    if not several:
        return f"single_node_{_split(subject)}"
    stages, data = count(subject, "--pipeline-parallel-size", 1), count(subject, "--data-parallel-size", 1)
    if stages is not None and stages > 1:
        return "multi_node_tp_pp"
    if data is not None and data > 1 and not flag(subject, "--enable-expert-parallel"):
        return "multi_node_tp_dp"
    return f"multi_node_{_split(subject)}"


def _split(subject: Subject) -> str:
    data = count(subject, "--data-parallel-size", 1)
    if not flag(subject, "--enable-expert-parallel"):
        return "tp"
    return "dep" if data is not None and data > 1 else "tep"
