"""What a JSON object of a load tool is, by the keys that only that tool writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moeplan.errors import InputError, Issue

__all__ = ["BENCHMARK_SERVING", "VLLM_BENCH", "require_tool", "tool_of"]

VLLM_BENCH = "vllm bench serve"
BENCHMARK_SERVING = "benchmark_serving (vLLM of 2025, or a fork)"

_MARKS = (
    ("SGLang bench_serving", ("total_output_tokens_retokenized", "random_range_ratio")),
    ("guidellm", ("benchmarks", "metadata")),
    ("guidellm 0.3 or older", ("benchmarks",)),
    (VLLM_BENCH, ("endpoint_type", "model_id", "duration")),
    (BENCHMARK_SERVING, ("backend", "model_id", "duration")),
    ("InferenceX aggregate", ("infmax_model_prefix",)),
    ("InferenceX runner summary", ("hw", "framework", "metrics")),
    ("aiperf summary", ("aiperf_version",)),
    ("aiperf summary", ("request_throughput", "input_config")),
    ("inference-perf summary", ("load_summary", "successes")),
    ("lm-evaluation-harness results", ("results", "versions")),
)
"""Source: files of SGLang 0.5.23, guidellm 0.3 to 0.8, vLLM 2025 to 0.32, InferenceX 2026, aiperf 0.13."""


def tool_of(document: Any) -> str | None:
    """Return which tool wrote a JSON object, or None where no mark of a known one is in it."""
    keys = set(document) if type(document) is dict else set()
    return next((tool for tool, marks in _MARKS if keys.issuperset(marks)), None)


def require_tool(document: Any, tool: str, code: str, columns: Sequence[str], step: str) -> None:
    """Refuse what another tool wrote, and what lacks the raw data of each request.

    Args:
        document: one JSON value.
        tool: whose output is expected.
        code: the error where it is that tool's and keys are missing.
        columns: the keys that raw data need.
        step: what to do where they are missing.

    Raises:
        InputError: ``foreign_file``, or ``code``.
    """
    found = tool_of(document)
    if found != tool:
        got = found or "no tool that is known here"
        raise InputError(Issue("$", "foreign_file", f"not a file of {tool}", tool, got, "import it by its own name"))
    missing = [key for key in columns if key not in document]
    if missing:
        message = "the file lacks the raw data of each request"
        raise InputError(Issue("$", code, message, ", ".join(columns), "no " + ", ".join(missing), step))
