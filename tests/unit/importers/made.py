"""A small ``vllm bench serve`` result, made by hand; times chosen so that every figure can be checked on paper."""

from __future__ import annotations

import json
from typing import Any

from moeplan.importers.trial import TrialInputs

__all__ = ["encoded", "inputs", "result"]


def result(**changed: Any) -> dict[str, Any]:
    """Four requests of three tokens: three whole, one that the server broke after two chunks."""
    made: dict[str, Any] = {
        "date": "20261130-172949",
        "endpoint_type": "openai-chat",
        "model_id": "tiny",
        "num_prompts": 4,
        "max_concurrency": 2,
        "duration": 2.0,
        "completed": 4,
        "failed": 0,
        "total_input_tokens": 40,
        "total_output_tokens": 11,
        "request_throughput": 2.0,
        "output_throughput": 5.5,
        "total_token_throughput": 25.5,
        "max_concurrent_requests": 2,
        "input_lens": [10, 10, 10, 10],
        "output_lens": [3, 3, 3, 2],
        "ttfts": [0.1, 0.2, 0.3, 0.4],
        "itls": [[0.01, 0.03], [0.01, 0.03], [0.01, 0.03], [0.02]],
        "latencies": [0.14, 0.24, 0.34, 0.42],
        "start_times": [100.0, 100.1, 100.5, 101.0],
        "queue_times": [0.0, 0.001, 0.0, 0.0],
        "errors": ["", "", "", ""],
        "mean_ttft_ms": 250.0,
        "median_ttft_ms": 250.0,
        "p50_ttft_ms": 250.0,
        "p95_ttft_ms": 385.0,
        "mean_itl_ms": 20.0,
        "mean_tpot_ms": 20.0,
        "p99.9_e2el_ms": 419.76,
    }
    return made | changed


def encoded(**changed: Any) -> bytes:
    return json.dumps({key: value for key, value in result(**changed).items() if value != "absent"}).encode()


def inputs(**changed: Any) -> TrialInputs:
    stated: dict[str, Any] = {"requested_input_tokens": 10, "requested_output_tokens": 3, "ignore_eos": True}
    return TrialInputs(**(stated | changed))
