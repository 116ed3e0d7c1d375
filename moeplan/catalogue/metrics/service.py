"""Metrics of workload_sla."""

from __future__ import annotations

from moeplan.catalogue.metrics.metric import MOEPLAN, PER_TRIAL, Metric

__all__ = ["METRICS"]

_VLLM = "vLLM 0.32, vllm bench serve, per-request fields of --save-detailed (ttfts, itls, input_lens, output_lens)"
_QUANTILE = "H. A. David and H. N. Nagaraja, Order Statistics, 3rd ed. (2003), section 7.1; moeplan: batch test"

METRICS = (
    Metric(
        "ttft_p95_ns",
        "time to first token, 95th percentile",
        "ns",
        "From sending a request to its first chunk; one that failed or was cut short counts as above every limit.",
        "nearest rank: value number ceil(0.95 n) in ascending order, no interpolation; passes when the 95 % upper "
        "order-statistic bound is within the limit and, over 20 consecutive batches in start order, mean + 1.729·s/√20 "
        "of the share above the limit is at most 5 %, at the limit and at every looser one, compared in exact integers",
        "one request; the bound assumes independent requests, the batch test allows for neighbours that hang together",
        f"{_VLLM}; {_QUANTILE}",
    ),
    Metric(
        "chunk_gap_p95_ns",
        "gap between chunks, 95th percentile",
        "ns",
        "Time between two consecutive chunks of one request, pooled over the requests of a trial. A chunk may carry "
        "several tokens, so this is not the time per token; a failed request adds one value above every limit.",
        "nearest rank and bounds as for ttft_p95_ns over all gaps; batches are cut by request in start order, and a "
        "trial needs as many requests as the bound needs values",
        "one request; gaps of one request hang together, so batches are made of whole requests",
        f"{_VLLM}; {_QUANTILE}",
    ),
    Metric(
        "concurrency_sustained",
        "sustained concurrency",
        "requests",
        "Requests in flight at once while load was offered.",
        "greatest number of overlapping request intervals held for at least 90 % of the time from the first sending to "
        "the last; none where all starts are equal, because a tool that records no start times left them so",
        PER_TRIAL,
        MOEPLAN,
    ),
    Metric(
        "failed_requests",
        "failed requests",
        "requests",
        "Requests that ended in an error, or without the tokens asked for; a stream broken after HTTP 200 included.",
        "number of requests whose outcome is not complete",
        PER_TRIAL,
        MOEPLAN,
    ),
    Metric(
        "input_tokens_least",
        "fewest input tokens",
        "tokens",
        "Prompt tokens of the shortest prompt, as the server counted them.",
        "minimum over complete requests of the usage's prompt tokens",
        PER_TRIAL,
        "OpenAI-compatible API, usage.prompt_tokens",
    ),
    Metric(
        "output_tokens_least",
        "fewest output tokens",
        "tokens",
        "Generated tokens of the shortest answer, as the server counted them.",
        "minimum over complete requests of the usage's completion tokens",
        PER_TRIAL,
        "OpenAI-compatible API, usage.completion_tokens",
    ),
    Metric(
        "output_tokens_most",
        "most output tokens",
        "tokens",
        "Generated tokens of the longest answer, as the server counted them.",
        "maximum over complete requests of the usage's completion tokens",
        PER_TRIAL,
        "OpenAI-compatible API, usage.completion_tokens",
    ),
    Metric(
        "prefix_cache_share_basis_points",
        "share of prompt tokens from the prefix cache",
        "basis_points",
        "Prompt tokens served from the prefix cache, of all prompt tokens, warm-up included.",
        "ceil(10000 × cached prompt tokens / prompt tokens) by the growth of the engine's counters",
        PER_TRIAL,
        "vLLM metrics, vllm:prompt_tokens_cached_total and vllm:prompt_tokens_total",
    ),
    Metric(
        "engine_counter_differences",
        "engine and client counters that differ",
        "count",
        "Whether engine and client tell one story of requests, prompt tokens and generated tokens.",
        "of the three counters, how many grew in the engine by other than the client's sums plus the declared warm-up",
        PER_TRIAL,
        "vLLM metrics, vllm:request_success_total, vllm:prompt_tokens_total, vllm:generation_tokens_total",
    ),
    Metric(
        "complete_trials",
        "complete trials",
        "count",
        "Trials of closed runs, each of which left its record.",
        "number of serving-trial records; an aborted or missing trial of a run leaves it inconclusive",
        "one trial",
        MOEPLAN,
    ),
)
