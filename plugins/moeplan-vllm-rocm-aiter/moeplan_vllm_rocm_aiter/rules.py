"""What data cannot say of vLLM on AMD Instinct."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any

from moeplan_vllm.families import family_of, find_architecture
from packaging.version import Version

from moeplan.facts.fields import parse_field
from moeplan.facts.judge import Hit, Rule
from moeplan.facts.launches import Scene, Subject
from moeplan.facts.values import Value
from moeplan.manifests.versions import parse_version

__all__ = ["KERNEL_BLOCK", "RULES", "is_gfx942", "is_gfx950"]

KERNEL_BLOCK = (
    "VLLM_ROCM_USE_AITER",
    "VLLM_ROCM_USE_AITER_FP4BMM",
    "AITER_SITUV2_A8W4",
    "AITER_BF16_FP8_MOE_BOUND",
    "HIP_FORCE_DEV_KERNARG",
    "HSA_NO_SCRATCH_RECLAIM",
    "HSA_ENABLE_IPC_MODE_LEGACY",
    "SAFETENSORS_FAST_GPU",
    "VLLM_USE_BREAKABLE_CUDAGRAPH",
    "VLLM_ENABLE_K3_LATENT_MOE_TAIL_FUSION",
    "VLLM_ROCM_USE_KIMI_K3_PREROUTE_BF16",
    "VLLM_ROCM_USE_KIMI_K3_PREROUTE_FP8",
    "VLLM_ROCM_USE_KIMI_K3_LATENT_TAIL_FP8",
    "KIMI_K3_DUAL_PROJ_FP8_WEIGHT_CACHE_MODIFIER",
    "KIMI_K3_SHARED_DOWN_FP8_WEIGHT_CACHE_MODIFIER",
)
"""The variables that select the optimized image's kernels. Source: fact R-ENV-001."""
_KNOWN_TO_AITER = (16, 128)
_SMALL_HEADS = Version("0.27")
_OLD = Version("0.16")
_TESTED_PROFILES = ("opt/*", "stock/*")
_FAMILY_HEADS = {"kimi-k2": 64, **dict.fromkeys(("deepseek-r1", "deepseek-v3", "deepseek-v3.1", "deepseek-v3.2"), 128)}
"""Family → attention heads, for variants whose own configuration was not read. Source: facts R-CHO-010."""
_MEMORY_FREE = Decimal("0.89")
"""Share of a MI355X that was free when engines started. Source: SemiAnalysisAI/InferenceX#2522, 256 of 288 GiB."""
_FAULTING = {"glm-5.3-flash*": 8193, "minimax-m2.5*": 8192}
"""Model → batched tokens from which AITER's kernels fault. Source: fact R-LOG-010."""
_FAULTING_ANY = 16384


def is_gfx942(hardware: object) -> bool:
    """Return whether a site's word for its hardware means MI300X, MI308X or MI325X."""
    return any(name in str(hardware).lower() for name in ("mi300", "mi308", "mi325", "gfx942"))


def is_gfx950(hardware: object) -> bool:
    """Return whether a site's word for its hardware means MI350X or MI355X."""
    return any(name in str(hardware).lower() for name in ("mi350", "mi355", "gfx950"))


def _look(subject: Subject, field: str) -> Value:
    return subject.look(parse_field(field))


def _vllm(scene: Scene) -> Iterator[Subject]:
    for engine in scene.engines():
        if engine.program is not None and engine.program.name != "infera.engine.sglang":
            yield engine


def _incomplete_block(scene: Scene) -> Iterator[Hit]:
    for engine in _vllm(scene):
        given = {name: _look(engine, f"environment {name}") for name in KERNEL_BLOCK}
        lacking = [name for name, value in given.items() if value.state == "absent"]
        if lacking:
            count = f"{len(lacking)} of {len(KERNEL_BLOCK)} variables are not set: {', '.join(lacking)}"
            yield Hit(given[lacking[0]].place or engine.place(), count, engine)


def _different_roles(scene: Scene) -> Iterator[Hit]:
    for group in dict.fromkeys(one.group for one in _vllm(scene)):
        pair = [one for one in _vllm(scene) if one.group == group and one.role in ("prefill", "decode")]
        for other in pair[1:]:
            names = [name for name in KERNEL_BLOCK if _differs(pair[0], other, name)]
            if names:
                lacking = other if _look(other, f"environment {names[0]}").state == "absent" else pair[0]
                place = _look(lacking, f"environment {names[0]}").place or lacking.place()
                told = ", ".join(f"{name} ({_shown(pair[0], name)} and {_shown(other, name)})" for name in names)
                yield Hit(place, f"{pair[0].role} and {other.role} differ in {told}", lacking)


def _shown(engine: Subject, name: str) -> str:
    return _look(engine, f"environment {name}").shown()


def _differs(left: Subject, right: Subject, name: str) -> bool:
    first, second = (_look(one, f"environment {name}") for one in (left, right))
    return "unknown" not in (first.state, second.state) and first.value != second.value


def _aiter_left_to_infera(scene: Scene) -> Iterator[Hit]:
    for engine in _vllm(scene):
        given = _look(engine, "environment VLLM_ROCM_USE_AITER")
        if given.state == "absent" and engine.program is not None and engine.program.name.startswith("infera."):
            message = "VLLM_ROCM_USE_AITER is not set; Infera sets it where it finds /dev/kfd"
            yield Hit(given.place or engine.place(), message, engine, "info")


def _scratch(scene: Scene) -> Iterator[Hit]:
    for engine in _vllm(scene):
        given = _look(engine, "environment HSA_NO_SCRATCH_RECLAIM")
        if scene.profile is not None and (given.state == "absent" or (given.is_known and given.value != "1")):
            message = f"HSA_NO_SCRATCH_RECLAIM is {given.shown()}; it must be 1 under MEC firmware before 177"
            yield Hit(given.place or engine.place(), message, engine, "info")


def _fp4_on_gfx942(scene: Scene) -> Iterator[Hit]:
    if not is_gfx942(scene.site.get("hardware")):
        return
    for engine in _vllm(scene):
        given = _look(engine, "environment VLLM_ROCM_USE_AITER_FP4BMM")
        place = given.place or engine.place()
        if scene.profile is not None:
            yield Hit(place, f"Kimi-K3 in MXFP4 on {scene.site['hardware']}", engine)
        elif given.is_known and given.value not in ("0", "false", "False"):
            message = f"VLLM_ROCM_USE_AITER_FP4BMM is {given.value} on {scene.site['hardware']}"
            yield Hit(place, message, engine)
        elif given.state == "absent" and _look(engine, "environment VLLM_ROCM_USE_AITER").value in ("1", "true"):
            message = f"VLLM_ROCM_USE_AITER_FP4BMM is not set, which means on, on {scene.site['hardware']}"
            yield Hit(place, message, engine, "warning")


def _heads(scene: Scene) -> Iterator[Hit]:
    if any(fnmatchcase(scene.profile or "", pattern) for pattern in _TESTED_PROFILES):
        return
    for engine in _vllm(scene):
        a_rank = _heads_a_rank(engine)
        if a_rank is None or a_rank in _KNOWN_TO_AITER or _look(engine, "environment VLLM_ROCM_USE_AITER").value == "0":
            continue
        severity = _judged(engine, a_rank)
        if severity is not None:
            place = _look(engine, "argument --tensor-parallel-size").place or engine.place()
            message = f"{a_rank} attention heads a rank; AITER's MLA knew 16 and 128, since vLLM 0.27 more"
            yield Hit(place, message, engine, severity)


def _heads_a_rank(engine: Subject) -> int | None:
    heads = _heads_of(_plain(engine.model_name or ""))
    size = _look(engine, "derived tensor-parallel-size")
    if heads is None or not str(size.value).isdigit():
        return None
    ranks = int(str(size.value))
    return heads // ranks if ranks and heads % ranks == 0 else None


def _heads_of(name: str) -> int | None:
    """Return the attention heads of a model with latent attention; of a variant, those of its family."""
    model = find_architecture(name)
    if model is not None:
        return model.heads if model.mla is not None else None
    return _FAMILY_HEADS.get(family_of(name) or "")


def _plain(reference: str) -> str:
    """Return a model's reference without the brackets of a placeholder and its last directory alone."""
    return reference.replace("<", "").replace(">", "").rstrip("/").rpartition("/")[2]


def _judged(engine: Subject, a_rank: int) -> str | None:
    """Return how sure it is that AITER has no kernel for so many heads; None where it has one."""
    hardware = engine.scene.site.get("hardware")
    told = _look(engine, "launch version")
    version = parse_version(str(told.value)) if told.is_known else None
    if a_rank < min(_KNOWN_TO_AITER):
        if is_gfx942(hardware):
            return "error"
        fits = is_gfx950(hardware) and version is not None and version >= _SMALL_HEADS
        return None if fits else _severity(version)
    if a_rank % min(_KNOWN_TO_AITER):
        return "error"
    return None if version is not None and version >= _SMALL_HEADS else _severity(version)


def _severity(version: Version | None) -> str:
    return "error" if version is not None and version <= _OLD else "info"


def _faulting_batches(scene: Scene) -> Iterator[Hit]:
    for engine in _vllm(scene):
        given = _look(engine, "argument --max-num-batched-tokens")
        if not str(given.value).isdigit() or _look(engine, "environment VLLM_ROCM_USE_AITER_MOE").value == "0":
            continue
        tokens, place = int(str(given.value)), given.place or engine.place()
        name = _plain(engine.model_name or "").lower()
        limits = [limit for pattern, limit in _FAULTING.items() if fnmatchcase(name, pattern)]
        if any(tokens >= limit for limit in limits):
            yield Hit(place, f"--max-num-batched-tokens {tokens} with {name}", engine, "warning")
        elif not name and tokens >= _FAULTING_ANY:
            yield Hit(place, f"--max-num-batched-tokens {tokens}: some models' kernels fault at that", engine, "info")


def _less_free(scene: Scene) -> Iterator[Hit]:
    for engine in _vllm(scene):
        given = _look(engine, "argument --gpu-memory-utilization")
        wanted = _decimal(given.value)
        if wanted is None:
            continue
        place = given.place or engine.place()
        short = [node for node in _measured(scene) if node["gpuFreeBytes"] < wanted * node["gpuMemoryBytes"]]
        for node in short:
            told = f"{given.value} of {node['gpuMemoryBytes']} bytes, of which {node['gpuFreeBytes']} are free"
            yield Hit(place, f"--gpu-memory-utilization asks for {told} on {node.get('name')}", engine)
        unknown = scene.profile is None and is_gfx950(scene.site.get("hardware")) and not _measured(scene)
        if unknown and wanted > _MEMORY_FREE:
            message = f"--gpu-memory-utilization {given.value} may be more than is free: see the preflight"
            yield Hit(place, message, engine, "info")


def _measured(scene: Scene) -> list[Mapping[str, Any]]:
    nodes = scene.site.get("nodes")
    listed = nodes if isinstance(nodes, list | tuple) else ()
    keys = ("gpuFreeBytes", "gpuMemoryBytes")
    return [one for one in listed if isinstance(one, Mapping) and all(type(one.get(key)) is int for key in keys)]


def _decimal(text: object) -> Decimal | None:
    try:
        return Decimal(str(text)) if text is not None else None
    except InvalidOperation:
        return None


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "R-ENV-001": _incomplete_block,
        "R-ENV-020": _different_roles,
        "R-ENV-024": _aiter_left_to_infera,
        "R-ENV-025": _scratch,
        "R-CHO-009": _fp4_on_gfx942,
        "R-CHO-010": _heads,
        "R-LOG-010": _faulting_batches,
        "R-RES-005": _less_free,
    }
)
"""Fact id → rule."""
