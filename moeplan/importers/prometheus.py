"""An engine's ``/metrics`` page: the few counters that a serving trial is compared with, and nothing else.

Source: metric names of vLLM 0.32 ``/metrics``.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.importers.shown import model_word
from moeplan.model.evidence import EngineCounters
from moeplan.units import MAX_SAFE_INTEGER, NS_PER_S
from moeplan.wire.prometheus_text import MAX_METRICS_BYTES, NUMBER, Sample, parse_exposition

__all__ = ["MAX_METRICS_BYTES", "EngineSnapshot", "counters_between", "read_snapshot"]

REQUESTS = "vllm:request_success_total"
PROMPT = "vllm:prompt_tokens_total"
GENERATION = "vllm:generation_tokens_total"
CACHED = ("vllm:prompt_tokens_cached_total", "vllm:prefix_cache_hits_total")
"""The second is the older name; it counts this engine's own prefix cache alone."""
PREEMPTIONS = "vllm:num_preemptions_total"
DRAFTED, ACCEPTED = "vllm:spec_decode_num_draft_tokens_total", "vllm:spec_decode_num_accepted_tokens_total"
TTFT, E2E = "vllm:time_to_first_token_seconds", "vllm:e2e_request_latency_seconds"
"""Histograms: their sums are seconds of the engine's own clock, over as many requests as their counts say."""
START = "process_start_time_seconds"
_MOST_SECONDS = MAX_SAFE_INTEGER // NS_PER_S
_COUNTERS = (
    "requests",
    "prompt_tokens",
    "cached_prompt_tokens",
    "generation_tokens",
    "preemptions",
    "draft_tokens",
    "accepted_draft_tokens",
)
NOT_SERVED = ("abort", "error")
"""Values of ``finished_reason`` that are no success, although the metric's name says so."""


@attrs.frozen
class Summed:
    """Sum and count of a histogram."""

    seconds: Decimal
    count: int


@attrs.frozen
class EngineSnapshot:
    """The counters of one scrape, summed over engines.

    Attributes:
        cached_prompt_tokens: None where the engine exposes none.
        started: whole seconds since the epoch when the process began; None where it is not exposed.
        start_text: the same as it was written, to tell two starts within a second apart.
        model: the model name that the counters carry; empty where they carry none.
        cached_from: which counter ``cached_prompt_tokens`` comes from.
        ttft: time to first token of all requests; None where it is not exposed, as the rest.
        e2e: time from arrival to the end of all requests.
    """

    requests: int
    prompt_tokens: int
    cached_prompt_tokens: int | None
    generation_tokens: int
    started: int | None
    start_text: str | None
    model: str = ""
    cached_from: str | None = None
    ttft: Summed | None = None
    e2e: Summed | None = None
    preemptions: int | None = None
    draft_tokens: int | None = None
    accepted_draft_tokens: int | None = None


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
        ttft=_summed(chosen, TTFT),
        e2e=_summed(chosen, E2E),
        preemptions=_optional(chosen, PREEMPTIONS),
        draft_tokens=_optional(chosen, DRAFTED),
        accepted_draft_tokens=_optional(chosen, ACCEPTED),
    )


def _of_model(samples: Sequence[Sample], model: str | None) -> list[Sample]:
    histograms = [f"{name}_{part}" for name in (TTFT, E2E) for part in ("sum", "count")]
    wanted = (REQUESTS, PROMPT, GENERATION, *CACHED, PREEMPTIONS, DRAFTED, ACCEPTED, *histograms)
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


def _optional(samples: Sequence[Sample], name: str) -> int | None:
    return _total(samples, name) if any(sample.name == name for sample in samples) else None


def _summed(samples: Sequence[Sample], name: str) -> Summed | None:
    """Return a histogram's sum and count over engines; None where it is not exposed or its sum is no number."""
    texts = [sample.value for sample in samples if sample.name == f"{name}_sum"]
    count = _optional(samples, f"{name}_count")
    if not texts or count is None or not all(NUMBER.fullmatch(text) for text in texts):
        return None
    values = [Decimal(text) for text in texts]
    if not all(value.is_finite() and 0 <= value < _MOST_SECONDS for value in values):
        return None
    return Summed(sum(values, Decimal(0)), count)


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
            Issue("model_name", "model_differs", message, model_word(before.model), model_word(after.model), step)
        )
    if before.start_text is not None and after.start_text is not None and before.start_text != after.start_text:
        raise _reset(START, before.start_text, after.start_text)
    grown: dict[str, int | None] = {}
    for name in _COUNTERS:
        old, new = getattr(before, name), getattr(after, name)
        renamed = name == "cached_prompt_tokens" and before.cached_from != after.cached_from
        if old is None or new is None or renamed:
            grown[name] = None
            continue
        if new < old:
            raise _reset(name, str(old), str(new))
        grown[name] = new - old
    requests = grown["requests"]
    ttft, e2e = _grown_ns(before.ttft, after.ttft, requests), _grown_ns(before.e2e, after.e2e, requests)
    return EngineCounters(**grown, ttft_ns=ttft, e2e_ns=e2e)  # type: ignore[arg-type]


def _grown_ns(before: Summed | None, after: Summed | None, requests: int | None) -> int | None:
    """Return the growth of a histogram's sum in ns, rounded; None where it is not over the requests that finished well.

    The engine keeps the sum as a double, so it is right to a microsecond or so.
    """
    if before is None or after is None or after.count - before.count != requests or after.seconds < before.seconds:
        return None
    return int(((after.seconds - before.seconds) * NS_PER_S).to_integral_value())


def _reset(name: str, old: str, new: str) -> InputError:
    message = "the engine restarted between the two scrapes"
    step = "the trial ran on two engine starts: run it again, or leave --metrics out"
    return InputError(Issue(name, "counter_reset", message, f"{escape(old, 40)} or more", escape(new, 40), step))
