"""Memory of a device under given arguments: total, the share the engine asks for, what it takes beside the weights."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

import attrs

from moeplan.model.placement import Figure
from moeplan.model.plugin import FactSource
from moeplan_vllm.devices import GIB, Device
from moeplan_vllm.layout import Layout
from moeplan_vllm.models import Model

__all__ = ["Settings", "batched_tokens", "device_memory", "overhead_of", "unknown"]

_BUDGET = FactSource("vLLM 0.32.0 source", "v1/worker/utils.py request_memory, v1/worker/gpu_worker.py")
_SEEN = FactSource("llm-d-incubation/llm-d-planner#205", "vLLM 0.19.0 startup logs on H100")


@attrs.frozen(kw_only=True)
class Settings:
    """What the arguments say about memory.

    Attributes:
        utilisation: ``--gpu-memory-utilization``.
        request_tokens: input and output tokens of a request.
        kv_dtype: ``--kv-cache-dtype``.
        batched_tokens: ``--max-num-batched-tokens``; None: the engine's default for the device.
        sequences: ``--max-num-seqs``; None: the engine's default for the device.
        moe_backend: the kernel that runs the experts, as ``devices.json`` names it; None: not stated.
        prefix_caching: whether prefixes are kept.
        draft_bytes: tensor bytes of a draft checkpoint; None: there is none.
        own_draft: whether the model's own draft layers (MTP) are loaded.
    """

    utilisation: Decimal
    request_tokens: int
    kv_dtype: str = "auto"
    batched_tokens: int | None = None
    sequences: int | None = None
    moe_backend: str | None = None
    prefix_caching: bool = True
    draft_bytes: int | None = None
    own_draft: bool = False


def unknown(reason: str) -> Figure:
    """Return the figure of something not known."""
    return Figure(None, "unknown", reason)


def device_memory(device: Device | None, utilisation: Decimal) -> tuple[Figure, Figure]:
    """Return the device's total as torch reports it, and the share of it that the engine asks for."""
    if device is None:
        reason = unknown("the memory of this accelerator as torch reports it has not been seen in a log")
        return reason, reason
    certainty = "estimated" if device.about else "calculated"
    source = FactSource(device.source)
    total = Figure(device.total_bytes, certainty, f"what torch reports on {device.id}", (source,))
    share = int((utilisation * device.total_bytes).to_integral_value(ROUND_CEILING))
    return total, Figure(share, certainty, f"{utilisation} of the device, rounded up", (source, _BUDGET))


def batched_tokens(device: Device | None, settings: Settings) -> int:
    """Return the tokens of one step; the engine's default grows with the device.

    Source: vLLM 0.32.0 ``engine/arg_utils.py`` lines 2923-2945.
    """
    if settings.batched_tokens is not None:
        return settings.batched_tokens
    if device is None or device.total_bytes >= 160 * GIB:
        return 16384
    return 8192 if device.total_bytes >= 70 * GIB else 2048


def overhead_of(model: Model, layout: Layout, device: Device | None, settings: Settings) -> Figure:
    """Return what an engine takes beside weights and cache, from what 0.19 logs on H100 show.

    Activations: 4 (dense) to 5 (experts) times sequences x vocabulary x 4 bytes; communication 2.21 GiB with tensor
    parallelism and 0.25 GiB without; graphs 1.85 GiB.
    """
    if (
        device is None
        or device.vendor != "nvidia"
        or model.vocabulary is None
        or batched_tokens(device, settings) > 8192
    ):
        return unknown("no rule for activations, graphs and communication here: logs exist for H100 and 8192 tokens")
    default = 1024 if device.total_bytes >= 70 * GIB else 256
    sequences = settings.sequences if settings.sequences is not None else default
    size = (5 if model.experts is not None else 4) * sequences * model.vocabulary * 4
    fixed = Decimal("4.06") if layout.tensor > 1 else Decimal("2.10")
    size += int((fixed * GIB).to_integral_value(ROUND_CEILING))
    said = "activations, communication and graphs as in vLLM 0.19 logs on H100, the most seen of each"
    return Figure(size, "estimated", said, (_SEEN,))
