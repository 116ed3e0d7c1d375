"""What lines of a vLLM server's log are read for: one row a kind of line; whatever else they say is left alone.

Sources: vLLM's logging calls in releases 0.10 to 0.32 (``v1/engine/core.py``, ``v1/core/kv_cache_utils.py``,
``v1/worker/{gpu,cpu}_worker.py``, ``v1/worker/gpu_model_runner.py``, ``v1/spec_decode/metrics.py``,
``distributed/eplb/eplb_state.py``, ``platforms/*.py``), and logs of these releases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import ROUND_HALF_EVEN, Decimal
from typing import NamedTuple

from moeplan.units import MAX_SAFE_INTEGER, NS_PER_S

__all__ = ["Found", "read_line"]

_GIB = 1 << 30
_NUMBER = r"(\d{1,9}(?:\.\d{1,9})?)"
_WORD = r"([A-Za-z][A-Za-z0-9_.+-]{0,63})"


class Found(NamedTuple):
    """One value a line tells: an integer in ``unit``, or a word."""

    metric: str
    value: int
    unit: str
    text: str = ""


Reader = Callable[[re.Match[str]], Iterator[Found]]


def gibibytes(text: str) -> int:
    """Return bytes of a decimal number of GiB, rounded half to even from the exact decimal."""
    return int((Decimal(text) * _GIB).to_integral_value(ROUND_HALF_EVEN))


def _bytes(metric: str) -> Reader:
    return lambda match: iter((Found(metric, gibibytes(match[1]), "bytes"),))


def _seconds(metric: str) -> Reader:
    return lambda match: iter((Found(metric, _nanoseconds(match[1]), "ns"),))


def _nanoseconds(text: str) -> int:
    return int((Decimal(text) * NS_PER_S).to_integral_value(ROUND_HALF_EVEN))


def _count(metric: str, unit: str) -> Reader:
    return lambda match: iter((Found(metric, int(match[1].replace(",", "")), unit),))


def _word(metric: str) -> Reader:
    def read(match: re.Match[str]) -> Iterator[Found]:
        text = next((group for group in match.groups() if group), "")
        yield Found(metric, 0, "word", text.strip())

    return read


def _share(metric: str) -> Reader:
    return lambda match: iter((Found(metric, int(Decimal(match[1]) * 10_000), "basis_points"),))


def _state(name: str) -> Reader:
    return lambda _match: iter((Found("engine_state", 0, "word", name),))


def _loading(match: re.Match[str]) -> Iterator[Found]:
    yield Found("model_loading_bytes", gibibytes(match[1]), "bytes")
    if match[2]:
        yield Found("model_loading_ns", _nanoseconds(match[2]), "ns")


def _kv_cache(match: re.Match[str]) -> Iterator[Found]:
    yield Found("kv_cache_tokens", int(match[1].replace(",", "")), "tokens")


def _version(match: re.Match[str]) -> Iterator[Found]:
    yield Found("engine_version", 0, "word", match[1])
    yield Found("engine_state", 0, "word", "starting")


def _graphs(match: re.Match[str]) -> Iterator[Found]:
    yield Found("cuda_graph_capture_ns", _nanoseconds(match[1]), "ns")
    yield Found("cuda_graph_bytes", gibibytes(match[2]), "bytes")


def _profile(match: re.Match[str]) -> Iterator[Found]:
    names = ("non_kv_cache_bytes", "activation_peak_bytes", "non_torch_bytes", "weights_bytes")
    for name, text in zip(names, match.groups(), strict=True):
        yield Found(name, gibibytes(text), "bytes")


def _speculation(match: re.Match[str]) -> Iterator[Found]:
    yield Found("accepted_draft_tokens", int(match[1]), "tokens")
    yield Found("draft_tokens", int(match[2]), "tokens")


def _balance(match: re.Match[str]) -> Iterator[Found]:
    yield Found("eplb_balancedness_basis_points", int(Decimal(match[1]) * 10_000), "basis_points")


def _arguments(match: re.Match[str]) -> Iterator[Found]:
    """Of the arguments one switch alone is read; not one value of them enters a record."""
    on = re.search(r"'?enable_expert_parallel'?\s*[:=]\s*True", match[1]) is not None
    yield Found("expert_parallel_enabled", int(on), "boolean")


_SIZES = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


def _configuration(match: re.Match[str]) -> Iterator[Found]:
    """The first line of an engine core: its version and, of its configuration, closed words and sizes."""
    text = match[2]
    yield Found("engine_core_version", 0, "word", match[1])
    for name in _SIZES:
        size = re.search(rf"\b{name}=(\d{{1,5}})\b", text)
        if size:
            yield Found(name, int(size[1]), "count")
    length = re.search(r"\bmax_seq_len=(\d{1,12})\b", text)
    if length:
        yield Found("max_model_len", int(length[1]), "tokens")
    for metric, pattern in (
        ("precision", r"\bdtype=(?:torch\.)?" + _WORD),
        ("quantization", r"\bquantization=" + _WORD),
        ("kv_cache_precision", r"\bkv_cache_dtype=(?:torch\.)?" + _WORD),
    ):
        word = re.search(pattern, text)
        if word:
            yield Found(metric, 0, "word", "none" if word[1] == "None" else word[1])
    yield from _draft(text)


def _draft(text: str) -> Iterator[Found]:
    given = re.search(r"\bspeculative_config=(None\b|SpeculativeConfig\((?:method=['\"]?" + _WORD + r")?)", text)
    if given is None:
        return
    yield Found("speculation", 0, "word", "none" if given[1] == "None" else given[2] or "unnamed")
    tokens = re.search(r"\bnum_spec(?:ulative)?_tokens=(\d{1,4})\b", text)
    if tokens:
        yield Found("speculative_tokens", int(tokens[1]), "tokens")


_RULES: tuple[tuple[str, re.Pattern[str], Reader], ...] = tuple(
    (anchor, re.compile(pattern), reader)
    for anchor, pattern, reader in (
        ("version", r"(?:vLLM API server version|█\s+version) v?(\d[0-9A-Za-z.+]{0,62})\s*$", _version),
        ("args: ", r"(?:non-default args|args): (.*)$", _arguments),
        (
            "Initializing a V1",
            r"Initializing a V1 LLM engine \(v(\d[0-9A-Za-z.+]{0,62})\) with config: (.*)$",
            _configuration,
        ),
        ("headless", r"Launching (?:vLLM|\d+ data parallel engine)\b.*\bheadless\b", _state("headless")),
        ("Application startup", r"Application startup complete", _state("ready")),
        ("hutdown", r"Application shutdown complete|Shutting down FastAPI", _state("stopped")),
        ("Resolved arch", r"Resolved architecture: " + _WORD, _word("architecture")),
        ("max model len", r"Using max model len (\d{1,12})", _count("max_model_len", "tokens")),
        (
            "ttention",
            r"Using (?:AttentionBackendEnum\.)?" + _WORD + r" attention backend out of potential"
            r"|Using ((?:Flash ?Attention|FlashInfer|FlashMLA|Triton(?: Attention| MLA)?|Cutlass MLA|Flex ?Attention"
            r"|AITER(?: MLA)?|Rocm Attention|Torch SDPA|CPU Attention)(?: backend)?) backend on V1",
            _word("attention_backend"),
        ),
        ("AttentionBackendEnum.", r"Using AttentionBackendEnum\." + _WORD + r" backend", _word("attention_backend")),
        (
            "MoE",
            r"Using '?([A-Za-z][A-Za-z0-9_ .+-]{0,62}?)'?(?: [A-Z][A-Za-z0-9]*)? MoE backend"
            r"|Using '?" + _WORD + r"'? backend for [A-Za-z0-9 ]{1,30}MoE",
            _word("moe_backend"),
        ),
        ("Model loading took", rf"Model loading took {_NUMBER} GiB(?: memory)?(?: and {_NUMBER} s)?", _loading),
        ("Loading weights took", rf"Loading weights took {_NUMBER} s", _seconds("weights_reading_ns")),
        ("Available KV cache", rf"Available KV cache memory: {_NUMBER} GiB", _bytes("available_kv_cache_bytes")),
        ("GiB for KV cache", rf"Explicitly set \({_NUMBER}/\d", _bytes("available_kv_cache_bytes")),
        ("KV cache size", r"[A-Z]{3} KV cache size: ([\d,]{1,20}) tokens", _kv_cache),
        ("Graph capturing", rf"Graph capturing finished in {_NUMBER} secs, took {_NUMBER} GiB", _graphs),
        ("graph pool", rf"CUDA graph pool memory: {_NUMBER} GiB \(actual\)", _bytes("cuda_graph_pool_bytes")),
        (
            "non KV cache",
            rf"Total non KV cache memory: {_NUMBER}GiB; torch peak memory increase: {_NUMBER}GiB; "
            rf"non-torch forward increase memory: {_NUMBER}GiB; weights memory: {_NUMBER}GiB",
            _profile,
        ),
        ("init engine", rf"init engine \(.*\) took {_NUMBER} s", _seconds("engine_initialization_ns")),
        (
            "SpecDecoding",
            r"SpecDecoding metrics: .*Accepted: (\d{1,12}) tokens, Drafted: (\d{1,12}) tokens",
            _speculation,
        ),
        ("balancedness", r"EPLB step: .*balancedness=([01]\.\d{1,9})\b", _balance),
        ("KV cache usage", r"Running: (\d{1,9}) reqs", _count("running_requests", "requests")),
        ("KV cache usage", r"Waiting: (\d{1,9}) reqs", _count("waiting_requests", "requests")),
    )
)


def read_line(text: str) -> Iterator[Found]:
    """Yield what a line tells, in order; most lines tell nothing."""
    for anchor, pattern, reader in _RULES:
        if anchor in text:
            match = pattern.search(text)
            if match:
                yield from (found for found in reader(match) if found.value <= MAX_SAFE_INTEGER)
