"""``derived NAME`` fields of NVIDIA's facts: the GPU, the image's CUDA, the driver, the recipe's variant."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from moeplan_vllm.families import name_of
from moeplan_vllm.rules.derived import DERIVED as VLLM_DERIVED
from moeplan_vllm.rules.placing import across_hosts
from moeplan_vllm.rules.reading import known_text, look

from moeplan.facts.launches import Derived, Subject
from moeplan.facts.values import Value, absent, known, unknown
from moeplan.manifests.versions import parse_range, parse_version
from moeplan_vllm_cuda.gpus import Gpu, find_gpu
from moeplan_vllm_cuda.recipes import find_variant

__all__ = ["DERIVED", "driver_needed", "gpu_of"]

_PRODUCT = 'pod nodeSelector["nvidia.com/gpu.product"]'
_AFFINITY = "pod affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
_CUDA_TAG = re.compile(r"-cu(\d{2})(\d)\b|cu(\d{2})(\d)-")
_DRIVERS = (("13", 580), ("12.9", 575), ("12.8", 570), ("12.4", 550))
"""CUDA release → first driver branch. Source: NVIDIA CUDA Toolkit release notes; facts C-DRV-001 and C-DRV-003."""
_DEFAULTS = ((">=0.27", "13.0"), (">=0.5,<0.6", "12.4"))
"""Releases of vLLM → CUDA of their images without a suffix. Source: vLLM 0.27.1 wheel, METADATA; the image of 0.5.0
asks its container runtime for ``cuda>=12.4``."""
_NVFP4 = ("modelopt_fp4", "nvfp4", "petit_nvfp4")
"""Values of ``--quantization`` for NVFP4. Source: vLLM 0.27.1 wheel, model_executor/layers/quantization."""
_PRECISIONS = (("nvfp4", "nvfp4"), ("fp4", "nvfp4"), ("mxfp4", "mxfp4"), ("fp8", "fp8"), ("bf16", "bf16"))


def gpu_of(subject: Subject) -> Gpu | None:
    """Return the GPU a launch runs on: what its pod selects, or else what the site has."""
    name = known_text(subject, _PRODUCT) or _required(subject)
    if name is None:
        site = subject.scene.site
        listed = site.get("nodes")
        nodes = listed if isinstance(listed, list | tuple) else ()
        models = {node.get("acceleratorModel") for node in nodes if isinstance(node, Mapping)}
        stated = site.get("hardware") or (next(iter(models)) if len(models) == 1 else None)
        name = stated if isinstance(stated, str) else None
    return None if name is None else find_gpu(name)


def _required(subject: Subject) -> str | None:
    """Return the product that the pod's node affinity requires; None unless all that it allows is one kind of GPU."""
    terms = look(subject, _AFFINITY).value
    names: list[str] = []
    for term in terms if isinstance(terms, list | tuple) else ():
        wanted = term.get("matchExpressions") if isinstance(term, Mapping) else None
        asked = [
            one
            for one in (wanted if isinstance(wanted, list | tuple) else ())
            if isinstance(one, Mapping) and one.get("key") == "nvidia.com/gpu.product" and one.get("operator") == "In"
        ]
        if not asked:
            return None
        names += [str(name) for one in asked for name in one.get("values") or ()]
    return names[0] if len({find_gpu(name) for name in names}) == 1 else None


def driver_needed(cuda: str) -> int | None:
    """Return the first driver branch for a CUDA release, None where that is not known."""
    for release, driver in _DRIVERS:
        if cuda == release or cuda.startswith(release + "."):
            return driver
    return None


def _gpu(subject: Subject) -> Any:
    gpu = gpu_of(subject)
    return ... if gpu is None else gpu.id


def _capability(subject: Subject) -> Any:
    gpu = gpu_of(subject)
    return ... if gpu is None or gpu.capability is None else gpu.capability


def _cuda(subject: Subject) -> Any:
    """Return the CUDA release of the image or wheel, as its tag tells, or as the release's default is known."""
    tag = known_text(subject, "image tag") or ""
    match = _CUDA_TAG.search(tag)
    if match is not None:
        major, minor = match[1] or match[3], match[2] or match[4]
        return f"{major}.{minor}"
    repository = known_text(subject, "image repository")
    if not (repository.endswith("vllm-openai") if repository is not None else subject.container is None):
        return ...
    if tag.startswith("kimi-k3"):
        return "13.0"
    version = parse_version(re.split(r"-", tag.removeprefix("v"))[0] if tag else known_text(subject, "launch version"))
    for text, cuda in _DEFAULTS:
        if version is not None and parse_range(text).contains(version):
            return cuda
    return ...


def _driver(subject: Subject) -> Any:
    site = subject.scene.site
    listed = site.get("nodes")
    nodes = listed if isinstance(listed, list | tuple) else ()
    given = [site.get("driver"), *(node.get("driver") for node in nodes if isinstance(node, Mapping))]
    majors = [int(match[1]) for one in given if isinstance(one, str) and (match := re.match(r"[rR]?(\d{3})\b", one))]
    return min(majors) if majors else ...


def _driver_needed(subject: Subject) -> Any:
    cuda = _cuda(subject)
    return ... if cuda is ... else (driver_needed(cuda) or ...)


def _precision(subject: Subject) -> Any:
    """Return how the checkpoint's weights are stored: as its recipe says, or as its name ends."""
    reference = subject.model_name
    if reference is None:
        return ...
    found = find_variant(reference)
    if found is not None:
        return found[1].precision
    if known_text(subject, "argument --quantization") in _NVFP4:
        return "nvfp4"
    name = name_of(reference)
    return next((precision for part, precision in _PRECISIONS if re.search(rf"[-_]{part}\b", name)), ...)


def _tensor_cap(subject: Subject) -> Any:
    found = None if subject.model_name is None else find_variant(subject.model_name)
    return None if found is None else found[1].tensor_cap


def _same_node_pair(subject: Subject) -> Any:
    there = across_hosts(subject)
    return ... if there is None else not there


def _derived(read: Callable[[Subject], Any], field: str) -> Derived:
    def derived(subject: Subject) -> Value:
        value, place = read(subject), look(subject, field).place
        if value is ...:
            return unknown(place)
        return absent(place) if value is None else known(value, place)

    return derived


DERIVED: Mapping[str, Derived] = {
    **VLLM_DERIVED,
    "gpu": _derived(_gpu, "launch model"),
    "compute-capability": _derived(_capability, "launch model"),
    "cuda": _derived(_cuda, "image reference"),
    "driver-major": _derived(_driver, "image reference"),
    "driver-needed": _derived(_driver_needed, "image reference"),
    "recipe-precision": _derived(_precision, "launch model"),
    "recipe-tensor-cap": _derived(_tensor_cap, "argument --tensor-parallel-size"),
    "same-node-pair": _derived(_same_node_pair, "environment UCX_TLS"),
}
"""Name → function of a launch."""
