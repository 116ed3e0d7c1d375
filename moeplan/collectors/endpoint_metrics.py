"""The engine's counters around a trial: its ``/metrics`` page, cut down to what may be kept.

A page can name paths, hosts and model files in its labels. Kept are the engine's own series, with the few labels whose
values say nothing of a site; the model's name becomes ``model``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import attrs

from moeplan.collectors.endpoint_address import Address
from moeplan.collectors.endpoint_connection import Connections, Deadlines
from moeplan.collectors.endpoint_requests import get_bytes
from moeplan.errors import InputError
from moeplan.units import NS_PER_S
from moeplan.wire.prometheus_text import Sample, parse_exposition

__all__ = ["KEPT_LABELS", "KEPT_MODEL", "MetricsPage", "reduce_page", "settled_page"]

KEPT_LABELS = ("engine", "finished_reason", "le", "model_name", "position")
KEPT_MODEL = "model"
_PREFIXES = ("vllm:", "sglang:")
_START = "process_start_time_seconds"
_DROPPED = ("vllm:cache_config_info", "vllm:lora_requests_info")
_COUNTED = ("vllm:request_success_total", "vllm:prompt_tokens_total", "vllm:generation_tokens_total")
_PAUSE_S = 0.25
_MOST_SCRAPES = 20
_LIMITS = Deadlines(5 * NS_PER_S, 10 * NS_PER_S, 10 * NS_PER_S)


@attrs.frozen
class MetricsPage:
    """Where an engine's page lies."""

    connections: Connections
    address: Address
    path: str
    key: str | None
    model: str

    async def scrape(self) -> bytes | None:
        """Return the page cut down, or None where there is none that can be read."""
        exchange = await self.connections.exchange(get_bytes(self.address, self.path, self.key), _LIMITS)
        if exchange.fault is not None or exchange.status != 200:
            return None
        try:
            return reduce_page(parse_exposition(b"".join(piece for _, piece in exchange.pieces)), self.model)
        except InputError:
            return None


async def settled_page(page: MetricsPage, idle: Callable[[bytes, bytes], bool] | None = None) -> bytes | None:
    """Return the page once two scrapes in a row count the same: an engine counts a request a moment after its end.

    None where there is no page, or the counters never come to rest within five seconds: something else is served.
    """
    same = idle or _same_counts
    before = await page.scrape()
    for _ in range(_MOST_SCRAPES):
        if before is None:
            return None
        await asyncio.sleep(_PAUSE_S)
        after = await page.scrape()
        if after is not None and same(before, after):
            return after
        before = after
    return None


def _same_counts(before: bytes, after: bytes) -> bool:
    return _counts(before) == _counts(after)


def _counts(page: bytes) -> list[bytes]:
    names = tuple(name.encode() for name in _COUNTED)
    return [line for line in page.split(b"\n") if line.startswith(names)]


def reduce_page(samples: Iterable[Sample], model: str) -> bytes:
    """Return the engine's series and the process's start; values of labels but :data:`KEPT_LABELS` become numbers.

    Where several models are served, those of ``model`` are kept.
    """
    kept = [sample for sample in samples if _wanted(sample)]
    names = {sample.labels["model_name"] for sample in kept if "model_name" in sample.labels}
    if len(names) > 1:
        kept = [sample for sample in kept if sample.labels.get("model_name", model) == model]
    aliases = _aliases(kept)
    lines = []
    for sample in kept:
        labels = {name: aliases.get((name, value), value) for name, value in sample.labels.items()}
        if "model_name" in labels:
            labels["model_name"] = KEPT_MODEL
        inner = ",".join(f'{name}="{value}"' for name, value in sorted(labels.items()))
        lines.append(f"{sample.name}{{{inner}}} {sample.value}\n" if inner else f"{sample.name} {sample.value}\n")
    return "".join(lines).encode()


def _aliases(samples: Iterable[Sample]) -> dict[tuple[str, str], str]:
    """Return a plain word for each label's value that is not to be kept: ``v1``, ``v2`` … by label."""
    values: dict[str, set[str]] = {}
    for sample in samples:
        for name, value in sample.labels.items():
            if name not in KEPT_LABELS or not _plain(value):
                values.setdefault(name, set()).add(value)
    return {(name, value): f"v{n}" for name, found in values.items() for n, value in enumerate(sorted(found), 1)}


def _wanted(sample: Sample) -> bool:
    if sample.name in _DROPPED:
        return False
    return sample.name.startswith(_PREFIXES) or (sample.name == _START and not sample.labels)


def _plain(value: str) -> bool:
    return len(value) <= 24 and all(c.isalnum() or c in "._+-" for c in value)
