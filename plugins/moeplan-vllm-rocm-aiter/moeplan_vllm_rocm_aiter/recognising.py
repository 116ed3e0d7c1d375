"""Which of the recipes' combinations manifests or scripts are, and whether a manifest is for this runtime at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from moeplan.facts.fields import parse_field
from moeplan.facts.launches import Scene, Subject
from moeplan.facts.values import Value

__all__ = ["OPTIMIZED", "SGLANG", "STOCK", "owns", "profile_of"]

OPTIMIZED = "sha256:5f3007aff1bc231eceb9f024e56ee80e44f9ca101a521aa50fe6bfa6c979d6b8"
"""Digest of the optimized image. Source: fact R-IMG-001."""
STOCK = "sha256:5aa7e626ff73672f5ca7aae46754570488c23d33ca1ac90756a1d2d1a3fe099b"
"""Digest of the stock image. Source: fact R-IMG-004."""
SGLANG = "sha256:3c01f73fe23aebf4a8853de0899a70b75c2af6c0409d2331353847aac4d3f906"
"""Digest of the SGLang image. Source: fact R-IMG-005."""
_SWITCHES = ("VLLM_ROCM_USE_KIMI_K3_PREROUTE_FP8", "VLLM_ROCM_USE_KIMI_K3_LATENT_TAIL_FP8")
"""Variables that only the optimized build reads. Source: fact R-IMG-006."""
_OWN = re.compile(
    r"infera\.(?:engine|server|kvd)|amd\.com/gpu|--device[= ]/dev/kfd|VLLM_ROCM_|\bAITER_|\bHIP_VISIBLE_DEVICES"
    r"|vllm-openai-rocm|rocm/vllm|kimi-k3-dspark|sglang-rocm"
)
_OTHER = re.compile(r"nvidia\.com/gpu|--gpus[= ]|\bNVIDIA_|\bCUDA_VISIBLE_DEVICES|vllm-openai:")


def profile_of(scene: Scene) -> str | None:
    """Return the combination that a scene is; None for other models and images, of which nothing is said.

    Images decide the family; roles, draft and kvd the rest. The stock image without Infera is no recipe: it is vLLM's
    own, with arguments of one's own.
    """
    engines = [one for one in scene.engines() if _is_kimi(one)]
    if not engines:
        return None
    families = {_family(one) for one in engines}
    if "sglang" in families:
        return "stock/disaggregated-sglang"
    shape = "disaggregated" if any(one.role in ("prefill", "decode") for one in engines) else "aggregated"
    if "opt" in families:
        drafts = any(_look(one, "argument --speculative-config").state != "absent" for one in engines)
        return f"opt/{shape}-dspark" if drafts else f"opt/{shape}"
    if "stock" in families:
        cached = any("InferaKvdConnector" in _listed(_look(one, "derived infera-connectors").value) for one in engines)
        return f"stock/{shape}-kvd" if cached else f"stock/{shape}"
    return None


def _look(subject: Subject, field: str) -> Value:
    return subject.look(parse_field(field))


def _listed(what: Any) -> Iterable[Any]:
    return what if isinstance(what, list) else ()


def _is_kimi(engine: Subject) -> bool:
    reference = (engine.model_name or "").rstrip("/").rpartition("/")[2].lower()
    return reference == "kimi-k3" or _family(engine) == "opt"


def _family(engine: Subject) -> str | None:
    if engine.program is not None and engine.program.name == "infera.engine.sglang":
        return "sglang"
    repository, digest = (_look(engine, f"image {part}").value for part in ("repository", "digest"))
    name = str(repository or "").rpartition("/")[2]
    if digest == OPTIMIZED or name == "kimi-k3-dspark":
        return "opt"
    if digest == STOCK or name == "vllm-openai-rocm":
        return "stock" if engine.program is not None and engine.program.name.startswith("infera.") else None
    if any(_look(engine, f"environment {switch}").state != "absent" for switch in _SWITCHES):
        return "opt"
    return None


def owns(manifest: Mapping[str, Any] | str) -> bool | None:
    """Return whether a manifest or script is for vLLM on AMD Instinct; None where nothing in it tells."""
    if isinstance(manifest, str):
        return _told([manifest])
    if manifest.get("kind") == "InferaDeployment":
        return True
    return _told(_texts(manifest))


def _told(texts: Iterable[str]) -> bool | None:
    other = False
    for text in texts:
        if _OWN.search(text):
            return True
        other = other or _OTHER.search(text) is not None
    return False if other else None


def _texts(what: Any) -> Iterator[str]:
    if isinstance(what, Mapping):
        for key, item in what.items():
            yield str(key)
            yield from _texts(item)
    elif isinstance(what, list | tuple):
        for item in what:
            yield from _texts(item)
    elif isinstance(what, str):
        yield what
