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
        "tpot_p95_ns",
        "time per output token after the first, 95th percentile",
        "ns",
        "Time from a request's first chunk to its last over its tokens after the first, so that several tokens in one "
        "chunk count as several; a request that failed or was cut short counts as above every limit.",
        "for each complete request ceil((last chunk - first chunk) / (output tokens - 1)), tokens by the server's "
        "usage; nearest rank and bounds as for ttft_p95_ns; a request of one token has none",
        "one request; the bound assumes independent requests, the batch test allows for neighbours that hang together",
        f"vLLM 0.32, vllm bench serve, mean_tpot_ms without its rounding; {_QUANTILE}",
    ),
    Metric(
        "goodput_basis_points",
        "goodput",
        "basis_points",
        "Share of all requests that are complete and within both latency targets: time to first token, and time per "
        "output token after the first.",
        "floor(10000 × requests complete with ttft and ceil((last chunk - first chunk) / (output tokens - 1)) within "
        "the plan's targets / all requests)",
        PER_TRIAL,
        "Y. Zhong et al., DistServe, OSDI 2024, section 2; vLLM 0.32, vllm bench serve --goodput",
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
        "steady_state_drift_basis_points",
        "drift over the trial",
        "basis_points",
        "How far apart the medians of a trial's quarters lie, over the median of all: a queue that builds up, an "
        "engine that is still warming up, or a machine that serves others too pulls them apart. Beyond the limit the "
        "trial shows nothing.",
        "duration of complete requests in start order in four quarters, warm-up left out; ceil(10000 × (greatest - "
        "least median of a quarter) / median of all), a median being the value of rank ceil(n / 2); none where no "
        "start times are recorded or for fewer than 4 requests",
        PER_TRIAL,
        MOEPLAN,
    ),
    Metric(
        "requests_per_stream",
        "requests of each stream",
        "requests",
        "How many requests each stream served one after another. All streams start at once, and below the limit those "
        "first requests weigh too much for the trial to show anything.",
        "floor(complete requests / the greater of the plan's and the declared concurrency)",
        PER_TRIAL,
        MOEPLAN,
    ),
    Metric(
        "client_overhead_basis_points",
        "client's share of the latency",
        "basis_points",
        "By how much the mean request took longer for the client than for the engine. Beyond the limit, or where the "
        "client measured that it needed more than 80 % of a core or was more than 10 ms late at the 99th percentile, "
        "the client may be the bottleneck and the trial shows nothing.",
        "max(0, ceil(10000 × client's mean / engine's mean) - 10000), the client's over complete requests from sending "
        "to the end, the engine's over all that it finished well, warm-up included, by the growth of its counters",
        PER_TRIAL,
        "vLLM metrics, vllm:e2e_request_latency_seconds and vllm:request_success_total",
    ),
    Metric(
        "warmup_late_share_basis_points",
        "late requests, warm-up included",
        "basis_points",
        "Share of requests that miss the target of the first token if as many of the declared warm-up do as the time "
        "the engine spent on it allows: slow requests that are called warm-up show in the engine's sums. Beyond the "
        "limit the trial shows nothing.",
        "ceil(10000 × (late + hidden) / (requests + hidden)); late: not complete, or ttft above its target; hidden: "
        "the greater of floor((engine's - client's sum of ttft) / TTFT target) and floor((engine's - client's sum of "
        "durations) / (TTFT target + (output tokens - 1) × inter-token target)), 0 at least and the warm-up's number "
        "at most; 0 without warm-up",
        PER_TRIAL,
        "vLLM metrics, vllm:time_to_first_token_seconds and vllm:e2e_request_latency_seconds",
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
    Metric(
        "quality_deficit_basis_points",
        "right answers below the reference",
        "basis_points",
        "By how much the share of right answers to a task lies below the reference's; negative where it lies above. "
        "Within the margin only where the one-sided 95 % bound is, over the standard errors of both.",
        "ceil(10000 × d), d = reference share - observed share; above the margin m: fail; passes where, with documents "
        "that were left out counted as wrong, m - d >= 0 and 1000²·(m - d)² >= 1645²·V, in exact integers; V is the "
        "sum of p(1 - p) / (n + 2) with p = (right + 1) / (n + 2) over reference and result",
        "one document; answers to different documents are taken as independent",
        "non-inferiority of two shares; A. Agresti and B. Caffo, The American Statistician 54 (2000) 280, section 3",
    ),
)
