"""Families of models by their names: what recipes, parsers and known defects go by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from moeplan_vllm.data import read_data
from moeplan_vllm.models import Model, find_model

__all__ = ["architecture", "family_of", "find_architecture", "name_of", "recognises"]

_CACHE_NAME = re.compile(r"models--[^/]+?--([^/]+)")


def name_of(reference: str) -> str:
    """Return a model's name in lower case: the last part of a hub id or of a directory."""
    text = reference.strip().rstrip("/")
    cached = _CACHE_NAME.search(text)
    return (cached[1] if cached is not None else text.rpartition("/")[2]).lower()


@cache
def family_of(reference: str) -> str | None:
    """Return the family a reference names (``kimi-k3``, ``deepseek-v3.2``), or None; drafts are of none."""
    name = name_of(reference)
    if re.search(r"speculator|dspark-draft|eagle|[-_]mtp\b", name):
        return None
    for row in read_data("families.json")["families"]:
        if re.fullmatch(row["pattern"], name):
            return str(row["family"])
    return None


@cache
def find_architecture(reference: str) -> Model | None:
    """Return the model a reference names, or another of the same shape where its own configuration was not read.

    What differs between the two is how weights are stored: ``tensor_bytes`` and ``formats`` are then not known.
    """
    found = find_model(reference)
    if found is not None:
        return found
    name = name_of(reference)
    like = read_data("families.json")["alike"].get(name)
    return None if like is None else find_model(like)


def recognises(reference: str) -> bool:
    """Return whether a reference names a model or a family that is known."""
    return family_of(reference) is not None or find_architecture(reference) is not None


def architecture(reference: str) -> Mapping[str, Any] | None:
    """Return architecture values for ``model KEY`` fields, None where the model is not known.

    Keys: ``repository``, ``heads``, ``kvHeads``, ``hiddenSize``, ``layers``, ``block``, ``denseIntermediate``,
    ``denseLayers``, ``expertIntermediate``, ``sharedIntermediate``, ``routedExperts``, ``latentAttention``,
    ``hybridAttention``, ``context``, ``tensorBytes``.
    """
    model = find_architecture(reference)
    if model is None:
        return None
    experts = model.experts
    data, name = read_data("families.json"), name_of(reference)
    shared = 0 if experts is None else experts.shared_intermediate
    return {
        "repository": model.repository,
        "heads": model.heads,
        "kvHeads": model.kv_heads,
        "hiddenSize": model.hidden_size,
        "layers": model.layers,
        "block": model.block or data["blocks"].get(name),
        "denseIntermediate": model.dense_intermediate,
        "denseLayers": model.experts.dense_layers if model.experts is not None else model.layers,
        "expertIntermediate": None if experts is None else experts.intermediate,
        "sharedIntermediate": shared or data["shared"].get(name, 0),
        "routedExperts": None if experts is None else experts.routed,
        "latentAttention": model.mla is not None,
        "hybridAttention": model.linear is not None,
        "context": model.context,
        "tensorBytes": model.tensor_bytes if find_model(reference) is not None else None,
    }
