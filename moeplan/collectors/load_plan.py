"""What a trial is to send, and when: closed loop, open loop, or as a trace says. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.units import BASIS_POINTS, NS_PER_MS, NS_PER_S

__all__ = ["SCHEDULES", "TRACE_BLOCK_TOKENS", "LoadPlan", "PlannedRequest", "Workload", "load_trace", "plan_load"]

SCHEDULES = ("closed", "poisson", "constant", "trace")
TRACE_BLOCK_TOKENS = 512
"""Tokens of one block of a trace. Source: Mooncake traces, ``hash_ids`` name blocks of 512 tokens."""
MAX_TRACE_REQUESTS = 1_000_000


@attrs.frozen
class PlannedRequest:
    """One request.

    Attributes:
        at_ns: when it is due, from the start of the trial; None as soon as one before it has ended.
        blocks: what its prompt is made of: (name, tokens); blocks of one name are equal in every request of a run.
        output_tokens: how many tokens are asked for.
    """

    at_ns: int | None
    blocks: tuple[tuple[str, int], ...]
    output_tokens: int

    @property
    def input_tokens(self) -> int:
        """Tokens of the prompt."""
        return sum(tokens for _, tokens in self.blocks)


@attrs.frozen
class LoadPlan:
    """One trial: its requests in the order they are due, and the cap on requests in flight, or None."""

    schedule: str
    requests: tuple[PlannedRequest, ...]
    concurrency: int | None


@attrs.frozen
class Workload:
    """What every trial of a run is made of.

    Attributes:
        schedule: one of :data:`SCHEDULES`.
        requests: how many a trial sends; of a trace the first so many.
        concurrency: the cap on requests in flight; needed for ``closed``.
        rate: requests a second, for ``poisson`` and ``constant``.
        prefix_share_bps: share of each prompt that all requests have in common, in basis points, rounded down.
        seed: of random prompts and arrivals.
        trace: the requests of a trace, for ``trace``.
    """

    schedule: str
    requests: int
    input_tokens: int
    output_tokens: int
    concurrency: int | None = None
    rate: Fraction | None = None
    prefix_share_bps: int = 0
    seed: int = 0
    trace: tuple[PlannedRequest, ...] = ()

    @property
    def least_input(self) -> int:
        """Tokens of the shortest prompt."""
        sizes = (request.input_tokens for request in self.trace[: self.requests])
        return min(sizes) if self.schedule == "trace" else self.input_tokens

    @property
    def least_output(self) -> int:
        """The fewest output tokens that a request asks for."""
        sizes = (request.output_tokens for request in self.trace[: self.requests])
        return min(sizes) if self.schedule == "trace" else self.output_tokens


def plan_load(workload: Workload, part: str) -> LoadPlan:
    """Return the requests of one part of a run (``warmup/1``, ``1``, ``2`` …); other parts have other prompts.

    The same workload and part give the same plan.
    """
    if workload.schedule == "trace":
        return LoadPlan("trace", workload.trace[: workload.requests], workload.concurrency)
    shared = workload.input_tokens * workload.prefix_share_bps // BASIS_POINTS
    own = workload.input_tokens - shared
    due = _due(workload, part)
    requests = tuple(
        PlannedRequest(at, tuple(_blocks(shared, own, f"{part}/{number}")), workload.output_tokens)
        for number, at in enumerate(due)
    )
    return LoadPlan(workload.schedule, requests, workload.concurrency)


def _blocks(shared: int, own: int, name: str) -> Sequence[tuple[str, int]]:
    return [block for block in (("shared", shared), (f"own/{name}", own)) if block[1]]


def _due(workload: Workload, part: str) -> list[int | None]:
    if workload.schedule == "closed":
        return [None] * workload.requests
    assert workload.rate is not None
    if workload.schedule == "constant":
        return [int(number * NS_PER_S / workload.rate) for number in range(workload.requests)]
    drawn = random.Random(f"{workload.seed}/arrivals/{part}")
    due, at = [], 0
    for _ in range(workload.requests):
        due.append(at)
        at += int(Fraction(drawn.expovariate(1.0)) * NS_PER_S / workload.rate)
    return list(due)


def load_trace(data: bytes, block_tokens: int = TRACE_BLOCK_TOKENS) -> tuple[PlannedRequest, ...]:
    """Return the requests of a trace in JSON Lines; other keys than those named are passed over.

    Args:
        data: lines with ``timestamp`` (ms, not falling), ``input_length``, ``output_length`` (tokens) and perhaps
            ``hash_ids``, one for each block of the prompt: requests with the same first ids have a prefix in common.
        block_tokens: tokens of one block.

    Source: Mooncake, "A KVCache-centric Disaggregated Architecture for LLM Serving", published traces.

    Raises:
        InputError: with the first fault of each line, at most 20.
    """
    issues: list[Issue] = []
    made: list[PlannedRequest] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip() or len(issues) >= 20:
            continue
        try:
            made.append(_traced(line, number, block_tokens, made[-1].at_ns or 0 if made else 0))
        except InputError as error:
            issues.append(error.issues[0].under(f"line {number}"))
    if issues:
        raise InputError(*issues)
    if not 1 <= len(made) <= MAX_TRACE_REQUESTS:
        raise InputError(
            Issue("$", "trace_size", "no requests, or too many", f"1 to {MAX_TRACE_REQUESTS}", str(len(made)))
        )
    first = made[0].at_ns or 0
    return tuple(attrs.evolve(request, at_ns=(request.at_ns or 0) - first) for request in made)


def _traced(line: bytes, number: int, block_tokens: int, earliest: int) -> PlannedRequest:
    value = _object(line)
    at = value.get("timestamp")
    if type(at) not in (int, Decimal) or not 0 <= at < 10**12:  # type: ignore[operator]
        raise InputError(Issue("$.timestamp", "invalid_value", "not a time", "ms, 0 or more", escape(repr(at), 40)))
    at_ns = int(at * NS_PER_MS)  # type: ignore[operator]
    if at_ns < earliest:
        raise InputError(Issue("$.timestamp", "not_sorted", "earlier than the line before", "times in order"))
    inputs, outputs = _tokens(value, "input_length"), _tokens(value, "output_length")
    ids = value.get("hash_ids", [])
    if type(ids) is not list or any(type(one) is not int for one in ids):
        raise InputError(Issue("$.hash_ids", "invalid_value", "not a list of ids", "integers"))
    if ids and not (len(ids) - 1) * block_tokens < inputs <= len(ids) * block_tokens:
        expected = f"one for each {block_tokens} tokens"
        step = "name the trace's own size with --trace-block-tokens"
        raise InputError(Issue("$.hash_ids", "wrong_count", "ids do not fit the length", expected, str(len(ids)), step))
    if not ids:
        return PlannedRequest(at_ns, ((f"line/{number}", inputs),), outputs)
    sizes = [block_tokens] * (len(ids) - 1) + [inputs - (len(ids) - 1) * block_tokens]
    return PlannedRequest(at_ns, tuple((f"hash/{one}", size) for one, size in zip(ids, sizes, strict=True)), outputs)


def _object(line: bytes) -> dict[str, Any]:
    import json

    try:
        value = json.loads(line.decode("utf-8"), parse_float=Decimal, parse_constant=lambda _name: None)
    except (ValueError, RecursionError):
        raise InputError(Issue("$", "invalid_json", "not a line of JSON", "an object")) from None
    if not isinstance(value, dict):
        raise InputError(Issue("$", "invalid_json", "not an object", "an object"))
    return value


def _tokens(value: dict[str, Any], key: str) -> int:
    found = value.get(key)
    if type(found) is not int or not 1 <= found <= 100_000_000:
        raise InputError(
            Issue(
                f"$.{key}", "invalid_value", "not a number of tokens", "an integer, 1 or more", escape(repr(found), 40)
            )
        )
    return found
