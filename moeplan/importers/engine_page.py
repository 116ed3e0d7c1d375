"""One page of an engine's ``/metrics`` after another -> rows: gauges, counters with their resets, KV capacity.

Sources: vLLM 0.32 ``v1/metrics/loggers.py``; SGLang 0.5 ``srt/metrics/collector.py``. Names of earlier releases stand
beside those of today, the first that a page has is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation

import attrs

from moeplan.model import memory_metrics as names
from moeplan.model.series_rows import SeriesRows
from moeplan.units import BASIS_POINTS, MAX_SAFE_INTEGER, NS_PER_S
from moeplan.wire.prometheus_text import Sample

__all__ = ["EnginePages", "EngineState", "kv_cache_tokens"]

_COUNTERS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (names.PROMPT_TOKENS, "tokens", ("vllm:prompt_tokens_total", "sglang:prompt_tokens_total")),
    ("generation_tokens", "tokens", ("vllm:generation_tokens_total", "sglang:generation_tokens_total")),
    (names.CACHED_PROMPT_TOKENS, "tokens", ("vllm:prompt_tokens_cached_total", "sglang:cached_tokens_total")),
    ("prefix_cache_hits", "tokens", ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total")),
    ("prefix_cache_queries", "tokens", ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total")),
    (names.EXTERNAL_HITS, "tokens", ("vllm:external_prefix_cache_hits_total",)),
    (names.EXTERNAL_QUERIES, "tokens", ("vllm:external_prefix_cache_queries_total",)),
    (names.PREEMPTIONS, "requests", ("vllm:num_preemptions_total",)),
)
_GAUGES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (names.REQUESTS_RUNNING, "requests", ("vllm:num_requests_running", "sglang:num_running_reqs")),
    (names.REQUESTS_WAITING, "requests", ("vllm:num_requests_waiting", "sglang:num_queue_reqs")),
)
_USAGE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage")
_BY_SOURCE = "vllm:prompt_tokens_by_source_total"
_SOURCES = (
    (names.PROMPT_TOKENS_COMPUTED, "local_compute"),
    (names.PROMPT_TOKENS_TRANSFERRED, "external_kv_transfer"),
)
_FINISHED = "vllm:request_success_total"
_NOT_SERVED = ("abort", "error")
_CACHE = "vllm:cache_config_info"
_MOST_TOKENS = "sglang:max_total_num_tokens"
_RESIDENT = "process_resident_memory_bytes"
_START = "process_start_time_seconds"


@attrs.frozen
class EngineState:
    """What one page says of the moment.

    Attributes:
        in_flight: requests running and waiting; None where the page is no engine's.
        started: the text of the process's start; two texts are two starts.
        started_ns: the same, nanoseconds since 1970.
    """

    in_flight: int | None
    started: str | None
    started_ns: int | None


class EnginePages:
    """The pages of one engine process, in order of time."""

    def __init__(self, rows: SeriesRows, subject: str, role: str | None = None) -> None:
        """Take where rows go, the pseudonym of the process, and the role it serves."""
        self._rows, self._subject, self._role = rows, subject, role
        self._last: dict[str, int] = {}
        self._started: str | None = None

    def read(self, time_ns: int, samples: Sequence[Sample]) -> EngineState:
        """Add what a page holds, and return what it says of the moment."""
        by_name: dict[str, list[Sample]] = {}
        for sample in samples:
            by_name.setdefault(sample.name, []).append(sample)
        start = next((one.value for one in by_name.get(_START, ()) if not one.labels), None)
        in_flight = self._gauges(time_ns, by_name)
        if in_flight is not None:
            self._word_of_role(time_ns)
            self._counters(time_ns, by_name, restarted=None not in (start, self._started) and start != self._started)
            self._started = start or self._started
        return EngineState(in_flight, start, _instant(start))

    def failed(self, time_ns: int) -> None:
        """Add that there was no page to be read."""
        self._rows.unread(time_ns, self._subject, names.REQUESTS_RUNNING, "requests", "failed")

    def _word_of_role(self, time_ns: int) -> None:
        if self._role is not None:
            self._rows.word(time_ns, self._subject, names.ROLE, self._role)
            self._role = None

    def _gauges(self, time_ns: int, pages: dict[str, list[Sample]]) -> int | None:
        in_flight: int | None = None
        for metric, unit, spellings in _GAUGES:
            value = _sum(_first(pages, spellings))
            if value is not None:
                self._rows.add(time_ns, self._subject, metric, value, unit)
                in_flight = value + (in_flight or 0)
        usage = [_share(sample.value) for sample in _first(pages, _USAGE)]
        if usage and None not in usage:
            most = max(value for value in usage if value is not None)
            self._rows.add(time_ns, self._subject, names.KV_CACHE_USAGE, most, "basis_points")
        if in_flight is not None:
            for metric, unit, value in (
                (names.KV_CACHE_TOKENS, "tokens", kv_cache_tokens(pages.get(_CACHE, ()), pages.get(_MOST_TOKENS, ()))),
                ("process_resident_bytes", "bytes", _sum(pages.get(_RESIDENT, ()))),
            ):
                if value is not None:
                    self._rows.add(time_ns, self._subject, metric, value, unit)
        return in_flight

    def _counters(self, time_ns: int, pages: dict[str, list[Sample]], *, restarted: bool) -> None:
        found = [(metric, unit, _sum(_first(pages, spellings))) for metric, unit, spellings in _COUNTERS]
        for metric, source in _SOURCES:
            chosen = [sample for sample in pages.get(_BY_SOURCE, ()) if sample.labels.get("source") == source]
            found.append((metric, "tokens", _sum(chosen)))
        served = [s for s in pages.get(_FINISHED, ()) if s.labels.get("finished_reason") not in _NOT_SERVED]
        found.append(("requests_finished", "requests", _sum(served)))
        for metric, unit, value in found:
            if value is None:
                continue
            fell = metric in self._last and (restarted or value < self._last[metric])
            (self._rows.reset if fell else self._rows.add)(time_ns, self._subject, metric, value, unit)
            self._last[metric] = value


def kv_cache_tokens(configs: Iterable[Sample], totals: Iterable[Sample] = ()) -> int | None:
    """Return the tokens that the KV cache holds, over the engines of the page; None where one does not tell.

    vLLM 0.32 tells them as ``kv_cache_size_tokens``. Earlier releases tell blocks and their size, whose product is the
    same where all layers cache alike, and more than what fits where they do not: then the engine's log has the truth.
    """
    found = [_cache_size(sample.labels) for sample in configs]
    found += [_whole(sample.value) for sample in totals]
    if not found or None in found:
        return None
    return sum(value for value in found if value is not None)


def _cache_size(labels: object) -> int | None:
    assert hasattr(labels, "get")
    told = _whole(labels.get("kv_cache_size_tokens", ""))
    if told is not None:
        return told
    blocks, size = _whole(labels.get("num_gpu_blocks", "")), _whole(labels.get("block_size", ""))
    return None if blocks is None or size is None else blocks * size


def _first(pages: dict[str, list[Sample]], spellings: tuple[str, ...]) -> list[Sample]:
    return next((pages[name] for name in spellings if name in pages), [])


def _sum(samples: Iterable[Sample]) -> int | None:
    """Return the sum over a page's engines and models; None where there is none, or one is no whole number."""
    values = [_whole(sample.value) for sample in samples]
    if not values or None in values:
        return None
    return min(sum(value for value in values if value is not None), MAX_SAFE_INTEGER)


def _decimal(text: str) -> Decimal | None:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if value.is_finite() and 0 <= value <= MAX_SAFE_INTEGER else None


def _whole(text: str) -> int | None:
    value = _decimal(text)
    return int(value) if value is not None and value == value.to_integral_value() else None


def _share(text: str) -> int | None:
    value = _decimal(text)
    return None if value is None or value > 1 else int(value * BASIS_POINTS)


def _instant(text: str | None) -> int | None:
    value = _decimal(text or "")
    return int(value * NS_PER_S) if value is not None and value < 2**33 else None
