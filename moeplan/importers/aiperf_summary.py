"""aiperf's own summary, ``profile_export_aiperf.json``: figures as claims, and what the records do not hold."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import attrs

from moeplan.errors import InputError, Issue
from moeplan.importers.shown import shown
from moeplan.importers.tool_json import parse_tool_json
from moeplan.model.evidence import Claim

__all__ = ["COUNTS", "TIMES", "AiperfSummary", "no_summary", "read_summary"]

TIMES = ("time_to_first_token", "request_latency", "inter_chunk_latency", "inter_token_latency")
"""Metrics in milliseconds that are kept, each with all its statistics."""
COUNTS = {
    "request_count": "requests",
    "error_request_count": "requests",
    "benchmark_duration": "sec",
    "request_throughput": "requests/sec",
    "output_token_throughput": "tokens/sec",
    "goodput": "requests/sec",
    "good_request_count": "requests",
    "total_output_tokens": "tokens",
}
"""Single figures that are kept, by name, with their unit."""
_STATISTICS = ("avg", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "min", "max", "std", "count", "sum")
_CLAIM_LENGTH = 64


@attrs.frozen
class AiperfSummary:
    """What the summary adds to the records.

    Attributes:
        claims: ``time_to_first_token.p95`` and so on: metric, then statistic, in the tool's unit.
        concurrency: the tool's cap, where it set one.
        schedule: as ``ServingTrial.schedule``.
        ignore_eos: whether the requests said so; None where the summary does not tell.
    """

    claims: tuple[Claim, ...]
    endpoint: str | None
    model: str | None
    concurrency: int | None
    version: str | None
    ignore_eos: bool | None
    schedule: str | None = None
    given: bool = True


def no_summary() -> AiperfSummary:
    """Return what is known where no summary was given."""
    return AiperfSummary((), None, None, None, None, None, given=False)


def read_summary(data: bytes) -> AiperfSummary:
    """Return what a ``profile_export_aiperf.json`` says, of schema 1.0 to 1.4 (aiperf 0.8 and 0.13 were seen).

    Raises:
        InputError: not such a file, or a figure in another unit.
    """
    document = parse_tool_json(data)
    if type(document) is not dict or "input_config" not in document or "request_count" not in document:
        message, expected = "not aiperf's summary", "profile_export_aiperf.json"
        raise InputError(Issue("$", "wrong_file", message, expected, None, "give the trial's own with --summary"))
    config = document["input_config"] if type(document["input_config"]) is dict else {}
    endpoint = config.get("endpoint")
    asked = endpoint if type(endpoint) is dict else {}
    return AiperfSummary(
        claims=tuple(sorted(_claims(document), key=lambda claim: claim.name)),
        endpoint=_text(asked.get("type")),
        model=_model(config, asked),
        concurrency=_concurrency(config),
        version=_text(document.get("aiperf_version")),
        ignore_eos=_ignore_eos(config, asked),
        schedule=_schedule(config),
    )


def _claims(document: dict[str, Any]) -> Iterator[Claim]:
    for name, unit in (dict.fromkeys(TIMES, "ms") | COUNTS).items():
        entry = document.get(name)
        if entry is None:
            continue
        if type(entry) is not dict or entry.get("unit") != unit:
            got = shown(entry.get("unit") if type(entry) is dict else entry)
            raise InputError(Issue(f"$.{name}.unit", "unknown_unit", "not the unit known here", unit, got))
        for statistic in _STATISTICS if name in TIMES else ("avg",):
            value = entry.get(statistic)
            if value is None:
                continue
            text = str(value)
            if type(value) not in (int, Decimal) or len(text) > _CLAIM_LENGTH:
                got = shown(value)
                raise InputError(Issue(f"$.{name}.{statistic}", "invalid_value", "value refused", "a number", got))
            yield Claim(f"{name}.{statistic}" if name in TIMES else name, text)


def _text(value: Any) -> str | None:
    return value if type(value) is str and 0 < len(value) <= 200 and value.isprintable() else None


def _model(config: dict[str, Any], endpoint: dict[str, Any]) -> str | None:
    """Return the one model asked for: ``models.items`` in aiperf 0.13, ``endpoint.model_names`` in 0.8."""
    models = config.get("models")
    items = models.get("items") if type(models) is dict else endpoint.get("model_names")
    names = [item.get("name") if type(item) is dict else item for item in items] if type(items) is list else []
    return _text(names[0]) if len(names) == 1 else None


def _load(config: dict[str, Any]) -> dict[str, Any]:
    """Return how the one profiling phase was loaded: ``phases`` in aiperf 0.13, ``loadgen`` in 0.8."""
    phases, loadgen = config.get("phases"), config.get("loadgen")
    every = [phase for phase in phases if type(phase) is dict] if type(phases) is list else []
    measured = [phase for phase in every if phase.get("kind") == "profiling"]
    return measured[0] if len(measured) == 1 else loadgen if type(loadgen) is dict else {}


def _concurrency(config: dict[str, Any]) -> int | None:
    value = _load(config).get("concurrency")
    return value if type(value) is int and value >= 1 else None


def _schedule(config: dict[str, Any]) -> str | None:
    return {"concurrency": "closed", "poisson": "poisson", "constant": "constant"}.get(str(_load(config).get("type")))


def _ignore_eos(config: dict[str, Any], endpoint: dict[str, Any]) -> bool | None:
    old = config.get("input")
    extra = endpoint.get("extra", old.get("extra_inputs_parsed") if type(old) is dict else None)
    return extra.get("ignore_eos") is True if type(extra) is dict else None
