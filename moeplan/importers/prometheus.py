"""An engine's ``/metrics`` page: the few counters that a serving trial is compared with, and nothing else.

Source: metric names of vLLM 0.32 ``/metrics``.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.model.evidence import EngineCounters
from moeplan.units import MAX_SAFE_INTEGER
from moeplan.wire.prometheus_text import MAX_METRICS_BYTES, NUMBER, Sample, parse_exposition

__all__ = ["MAX_METRICS_BYTES", "EngineSnapshot", "counters_between", "read_snapshot"]

REQUESTS = "vllm:request_success_total"
PROMPT = "vllm:prompt_tokens_total"
GENERATION = "vllm:generation_tokens_total"
CACHED = ("vllm:prompt_tokens_cached_total", "vllm:prefix_cache_hits_total")
"""The second is the older name; it counts this engine's own prefix cache alone."""
START = "process_start_time_seconds"
NOT_SERVED = ("abort", "error")
"""Values of ``finished_reason`` that are no success, although the metric's name says so."""


@attrs.frozen
class EngineSnapshot:
    """The counters of one scrape, summed over engines.

    Attributes:
        cached_prompt_tokens: None where the engine exposes none.
        started: whole seconds since the epoch when the process began; None where it is not exposed.
        start_text: the same as it was written, to tell two starts within a second apart.
        model: the model name that the counters carry; empty where they carry none.
        cached_from: which counter ``cached_prompt_tokens`` comes from.
    """

    requests: int
    prompt_tokens: int
    cached_prompt_tokens: int | None
    generation_tokens: int
    started: int | None
    start_text: str | None
    model: str = ""
    cached_from: str | None = None


def read_snapshot(data: bytes, model: str | None = None) -> EngineSnapshot:
    """Return the counters in one scrape of a vLLM engine.

    Args:
        data: the page's bytes.
        model: the model name that picks the series where several models are served.

    Raises:
        InputError: as :func:`parse_exposition`; a needed counter is missing, no whole number, or of no such model.
    """
    samples = parse_exposition(data)
    chosen = _of_model(samples, model)
    served = [sample for sample in chosen if sample.labels.get("finished_reason") not in NOT_SERVED]
    cached = next((name for name in CACHED if any(sample.name == name for sample in chosen)), None)
    start = next((sample.value for sample in samples if sample.name == START and not sample.labels), None)
    return EngineSnapshot(
        requests=_total(served, REQUESTS),
        prompt_tokens=_total(chosen, PROMPT),
        cached_prompt_tokens=None if cached is None else _total(chosen, cached),
        generation_tokens=_total(chosen, GENERATION),
        started=None if start is None else _seconds(start),
        start_text=start,
        model=next((sample.labels.get("model_name", "") for sample in chosen), ""),
        cached_from=cached,
    )


def _of_model(samples: Sequence[Sample], model: str | None) -> list[Sample]:
    wanted = (REQUESTS, PROMPT, GENERATION, *CACHED)
    chosen = [sample for sample in samples if sample.name in wanted]
    names = sorted({sample.labels.get("model_name", "") for sample in chosen})
    if len(names) <= 1:
        return chosen
    if model not in names:
        got = escape(", ".join(names), 200)
        raise InputError(
            Issue("model_name", "model_not_found", "several models, none of them the trial's", escape(str(model)), got)
        )
    return [sample for sample in chosen if sample.labels.get("model_name") == model]


def _total(samples: Sequence[Sample], name: str) -> int:
    found = [sample for sample in samples if sample.name == name]
    if not found:
        step = "scrape the engine's own /metrics (vLLM 0.9 or later)"
        raise InputError(Issue(name, "metric_missing", "counter not exposed", "at least one sample", None, step))
    return sum(_whole(sample) for sample in found)


def _whole(sample: Sample) -> int:
    try:
        value = Decimal(sample.value)
        if value.is_finite() and 0 <= value <= MAX_SAFE_INTEGER and value == value.to_integral_value():
            return int(value)
    except InvalidOperation:
        pass
    expected = "a whole number, 0 or more"
    raise InputError(
        Issue(f"line {sample.line}", "invalid_counter", f"{sample.name} is no count", expected, sample.value)
    )


def _seconds(text: str) -> int:
    value = Decimal(text) if NUMBER.fullmatch(text) else Decimal("NaN")
    if not value.is_finite() or not 0 <= value < 2**33:
        raise InputError(Issue(START, "invalid_instant", "not an instant", "seconds since the epoch", escape(text, 40)))
    return int(value)


def counters_between(before: EngineSnapshot, after: EngineSnapshot) -> EngineCounters:
    """Return how the counters grew between two scrapes of one engine process.

    Raises:
        InputError: ``counter_reset``: the process began anew, or a counter fell; ``model_differs``: they are not
            the counters of one model. Cached tokens that were counted under two names have no growth: None.
    """
    if before.model != after.model:
        message, step = "the two scrapes are of different models", "scrape one engine before and after each trial"
        raise InputError(
            Issue("model_name", "model_differs", message, escape(repr(before.model)), escape(repr(after.model)), step)
        )
    if before.start_text is not None and after.start_text is not None and before.start_text != after.start_text:
        raise _reset(START, before.start_text, after.start_text)
    grown: dict[str, int | None] = {}
    for name in ("requests", "prompt_tokens", "cached_prompt_tokens", "generation_tokens"):
        old, new = getattr(before, name), getattr(after, name)
        renamed = name == "cached_prompt_tokens" and before.cached_from != after.cached_from
        if old is None or new is None or renamed:
            grown[name] = None
            continue
        if new < old:
            raise _reset(name, str(old), str(new))
        grown[name] = new - old
    return EngineCounters(**grown)  # type: ignore[arg-type]


def _reset(name: str, old: str, new: str) -> InputError:
    message = "the engine restarted between the two scrapes"
    step = "the trial ran on two engine starts: run it again, or leave --metrics out"
    return InputError(Issue(name, "counter_reset", message, f"{escape(old, 40)} or more", escape(new, 40), step))
