"""The labels that Kubernetes recommends, where an object lacks them."""

from __future__ import annotations

import re
from typing import Any

from moeplan.model.plan import Plan

__all__ = ["label", "label_value", "recommended_labels"]

_PREFIX = "app.kubernetes.io/"
_MOST = 63
_TEMPLATES = ("template", "leaderTemplate", "workerTemplate")


def label_value(text: str) -> str:
    """Return a text as a label's value: other characters become ``-``, ends are letters or digits, 63 at most.

    Source: Kubernetes documentation, "Labels and Selectors", "Syntax and character set".
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:_MOST].strip("._-")


def recommended_labels(plan: Plan, profile: str) -> dict[str, str]:
    """Return the labels that all objects of a deployment share; ``component`` is each object's own.

    The version is the checkpoint's revision: that is what the deployment serves.
    Source: Kubernetes documentation, "Recommended Labels".
    """
    model = plan.artifact.model_id
    values = {
        "name": model,
        "instance": f"{model}-{profile}".replace("_", "-"),
        "version": plan.artifact.revision,
        "part-of": "moeplan",
        "managed-by": "moeplan",
    }
    made = {_PREFIX + key: label_value(value) for key, value in values.items()}
    return {key: value for key, value in made.items() if value}


def label(value: dict[str, Any], shared: dict[str, str]) -> dict[str, Any]:
    """Return an object with the labels it lacks; what it has stays, and so does everything else.

    Templates of pods that an object holds, a LeaderWorkerSet's two among them, get them too. ``component`` is the
    object's kind where it says none.
    """
    labels = shared | {_PREFIX + "component": label_value(value["kind"].lower())}
    made = value | {"metadata": _labelled(value["metadata"], labels)}
    spec = value.get("spec")
    if isinstance(spec, dict):
        own = made["metadata"]["labels"]
        made["spec"] = _with_templates(spec, {key: own[key] for key in labels})
    return made


def _with_templates(spec: dict[str, Any], wanted: dict[str, str]) -> dict[str, Any]:
    grown: dict[str, Any] = {}
    for key in _TEMPLATES:
        template = spec.get(key)
        if isinstance(template, dict) and isinstance(template.get("spec"), dict):
            metadata = template.get("metadata")
            labelled = {"metadata": _labelled(metadata if isinstance(metadata, dict) else {}, wanted)}
            grown[key] = labelled | {k: v for k, v in template.items() if k != "metadata"}
    group = spec.get("leaderWorkerTemplate")
    if isinstance(group, dict):
        grown["leaderWorkerTemplate"] = _with_templates(group, wanted)
    return spec | grown


def _labelled(metadata: dict[str, Any], labels: dict[str, str]) -> dict[str, Any]:
    given = metadata.get("labels")
    given = given if isinstance(given, dict) else {}
    return metadata | {"labels": dict(sorted((labels | given).items()))}
