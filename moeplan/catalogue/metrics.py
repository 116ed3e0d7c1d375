"""The metric catalogue: what each number means, exactly how it is computed, and where the definition comes from.

Core metrics only; a plugin brings its own with its criteria. ``docs/metrics.md`` shows this catalogue.
"""

from __future__ import annotations

import attrs

__all__ = ["METRICS", "Metric"]


@attrs.frozen
class Metric:
    """One metric.

    Attributes:
        id: the name criteria use.
        title: a few words for people.
        unit: unit of the value; ``digest``, ``identity`` and ``state`` are compared as text.
        definition: what is measured.
        computation: exactly how, from which data; integers only.
        independence: what counts as one independent observation, and what is assumed.
        source: where the definition comes from.
    """

    id: str
    title: str
    unit: str
    definition: str
    computation: str
    independence: str
    source: str


_VLLM = "vLLM 0.32, vllm bench serve, per-request fields of --save-detailed (ttfts, itls, input_lens, output_lens)"
_QUANTILE = "H. A. David and H. N. Nagaraja, Order Statistics, 3rd ed. (2003), section 7.1; moeplan: batch test"
_MOEPLAN = "moeplan"
_ONE_VALUE = "one value; nothing is sampled"
_PER_RECORD = "one record; nothing is assumed about others"
_PER_TRIAL = "one trial; trials are judged alone and all must pass"

_ALL = (
    Metric(
        "checkpoint_revision",
        "checkpoint revision",
        "identity",
        "Repository and immutable revision that the checkpoint manifest names.",
        "repository, '@' and revision of the checkpoint manifest, compared as text",
        _ONE_VALUE,
        _MOEPLAN,
    ),
    Metric(
        "checkpoint_root",
        "checkpoint root digest",
        "digest",
        "One digest over every file of the checkpoint.",
        "SHA-256 over one line a file in name order: hex digest, two spaces, size, two spaces, name, LF",
        _ONE_VALUE,
        _MOEPLAN,
    ),
    Metric(
        "digest_lead_seconds",
        "digest before execution",
        "s",
        "How long before the engine started the checkpoint's files had been hashed on the nodes that serve.",
        "for each trial and each node of its deployment, engineStart minus the end of the node's hashing, in whole "
        "seconds; the least of them",
        "one engine start on one node",
        _MOEPLAN,
    ),
    Metric(
        "minimum_accelerators",
        "static floor",
        "accelerators",
        "Fewest accelerators whose usable memory holds the checkpoint's tensors.",
        "ceil(tensor bytes / floor(device bytes × (10000 - reserve basis points) / 10000)), from the plan itself",
        _ONE_VALUE,
        _MOEPLAN,
    ),
    Metric(
        "checkpoint_tensor_bytes",
        "checkpoint tensor bytes",
        "bytes",
        "Exact bytes of all tensors in the checkpoint's files.",
        "sum of the data lengths in the safetensors headers, from the checkpoint manifest",
        _ONE_VALUE,
        "safetensors format: data_offsets of each tensor in the header",
    ),
    Metric(
        "engine_ready",
        "engine readiness",
        "state",
        "Whether the engine reported that it serves.",
        "'ready' where the engine's own log or health endpoint says so, else the last state seen",
        "one engine start",
        _MOEPLAN,
    ),
    Metric(
        "fatal_log_signatures",
        "fatal log signatures",
        "count",
        "Lines in the engine's log that match a known fatal signature, unsupported architecture and memory exhaustion "
        "among them.",
        "number of matches, summed over the records",
        "one engine start",
        _MOEPLAN,
    ),
    Metric(
        "environment_parts_missing",
        "environment parts missing",
        "count",
        "Parts of the environment record that are absent: runtime, container, kernels, drivers, sharding, precision, "
        "start command.",
        "number of absent parts, summed over the records",
        _PER_RECORD,
        _MOEPLAN,
    ),
    Metric(
        "memory_phases_captured",
        "memory phases captured",
        "count",
        "Phases of which device and host memory were recorded: idle, warm, peak.",
        "number of distinct phases with at least one device and one host sample",
        "one engine start",
        _MOEPLAN,
    ),
    Metric(
        "device_memory_peak_bytes",
        "peak device memory",
        "bytes",
        "Most memory in use on any one accelerator.",
        "maximum over samples and devices of the bytes in use, each record judged alone",
        "one record; samples within it hang together",
        _MOEPLAN,
    ),
    Metric(
        "workload_requests_in_capture",
        "requests during the capture",
        "count",
        "Complete requests of the planned shape that ran while memory was recorded.",
        "number of complete requests whose interval lies within the memory record's interval",
        "one request",
        _MOEPLAN,
    ),
    Metric(
        "memory_parts_missing",
        "memory parts missing",
        "count",
        "Parts of memory that no record breaks out: allocator, KV cache, activations, routing buffers, fragmentation.",
        "number of absent parts, summed over the records",
        _PER_RECORD,
        _MOEPLAN,
    ),
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
        "the last (to the last end where all were sent at once)",
        _PER_TRIAL,
        _MOEPLAN,
    ),
    Metric(
        "failed_requests",
        "failed requests",
        "requests",
        "Requests that ended in an error, or without the tokens asked for; a stream broken after HTTP 200 included.",
        "number of requests whose outcome is not complete",
        _PER_TRIAL,
        _MOEPLAN,
    ),
    Metric(
        "input_tokens_least",
        "fewest input tokens",
        "tokens",
        "Prompt tokens of the shortest prompt, as the server counted them.",
        "minimum over complete requests of the usage's prompt tokens",
        _PER_TRIAL,
        "OpenAI-compatible API, usage.prompt_tokens",
    ),
    Metric(
        "output_tokens_least",
        "fewest output tokens",
        "tokens",
        "Generated tokens of the shortest answer, as the server counted them.",
        "minimum over complete requests of the usage's completion tokens",
        _PER_TRIAL,
        "OpenAI-compatible API, usage.completion_tokens",
    ),
    Metric(
        "output_tokens_most",
        "most output tokens",
        "tokens",
        "Generated tokens of the longest answer, as the server counted them.",
        "maximum over complete requests of the usage's completion tokens",
        _PER_TRIAL,
        "OpenAI-compatible API, usage.completion_tokens",
    ),
    Metric(
        "prefix_cache_share_basis_points",
        "share of prompt tokens from the prefix cache",
        "basis_points",
        "Prompt tokens served from the prefix cache, of all prompt tokens, warm-up included.",
        "ceil(10000 × cached prompt tokens / prompt tokens) by the growth of the engine's counters",
        _PER_TRIAL,
        "vLLM metrics, vllm:prompt_tokens_cached_total and vllm:prompt_tokens_total",
    ),
    Metric(
        "engine_counter_differences",
        "engine and client counters that differ",
        "count",
        "Whether engine and client tell one story of requests, prompt tokens and generated tokens.",
        "of the three counters, how many grew in the engine by other than the client's sums plus the declared warm-up",
        _PER_TRIAL,
        "vLLM metrics, vllm:request_success_total, vllm:prompt_tokens_total, vllm:generation_tokens_total",
    ),
    Metric(
        "complete_trials",
        "complete trials",
        "count",
        "Trials of closed runs, each of which left its record.",
        "number of serving-trial records; an aborted or missing trial of a run leaves it inconclusive",
        "one trial",
        _MOEPLAN,
    ),
    Metric(
        "expert_layers_without_counts",
        "layers without expert counts",
        "count",
        "Mixture-of-experts layers for which no per-expert count was recorded.",
        "number of such layers, summed over the records",
        "one layer of one engine start",
        _MOEPLAN,
    ),
    Metric(
        "dropped_tokens_unreported",
        "layers silent on dropped tokens",
        "count",
        "Layers whose record does not say how many tokens were dropped.",
        "number of such layers, summed over the records",
        "one layer of one engine start",
        _MOEPLAN,
    ),
    Metric(
        "communication_samples",
        "communication samples",
        "count",
        "Samples that split a step into routing, all-to-all communication and the rest.",
        "number of samples, summed over the records",
        "one traced step; steps of one run hang together",
        _MOEPLAN,
    ),
    Metric(
        "cost_inputs_missing",
        "cost inputs missing",
        "count",
        "Inputs of a cost for each million successful output tokens that are absent: price, duration, tokens.",
        "number of absent inputs, summed over the records",
        _PER_RECORD,
        _MOEPLAN,
    ),
    Metric(
        "worker_failures_recorded",
        "worker failures recorded",
        "count",
        "Controlled worker failures with failure, recovery and the gap in service on one timeline.",
        "number of such timelines, summed over the records",
        "one failure",
        _MOEPLAN,
    ),
    Metric(
        "requests_lost_in_failure",
        "requests lost in a failure",
        "requests",
        "Requests sent during a controlled worker failure that did not complete.",
        "number of such requests, summed over the records",
        "one failure",
        _MOEPLAN,
    ),
)

METRICS: dict[str, Metric] = {metric.id: metric for metric in _ALL}
"""Every core metric by id."""
