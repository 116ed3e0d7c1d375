"""Metrics of runtime_load."""

from __future__ import annotations

from moeplan.catalogue.metrics.metric import MOEPLAN, PER_RECORD, Metric

__all__ = ["METRICS"]

METRICS = (
    Metric(
        "engine_ready",
        "engine readiness",
        "state",
        "Whether the engine says in its log that it serves.",
        "'ready' where every start in the logs comes to 'Application startup complete', else the last state of the "
        "first that does not; a log of every role of the plan is needed",
        "one engine start",
        "vLLM, server log",
    ),
    Metric(
        "ready_seconds",
        "time to ready",
        "s",
        "How long the slowest engine start takes until it serves.",
        "seconds from the start to the log's line that says ready, rounded up, the largest of all; the start is "
        "the earlier one of engineStart and the log's first line of it; the log has to begin with that line",
        "one engine start",
        "vLLM, server log",
    ),
    Metric(
        "fatal_log_signatures",
        "fatal log signatures",
        "count",
        "Lines in the engine's log that match a known fatal signature, unsupported architecture, exhausted memory and "
        "a missing kernel among them.",
        "number of matching lines, summed over the logs; lines that say that the engine died do not count within the "
        "interval of a signed failure timeline; a pass needs logs from the engine's first line that cover every trial, "
        "to 15 s before its end at the latest",
        "one engine start",
        MOEPLAN,
    ),
    Metric(
        "environment_parts_missing",
        "environment parts missing",
        "count",
        "Parts of the environment that are not on record: runtime, container, kernels, driver, operating system, "
        "sharding, precision, start command.",
        "number of absent parts, summed over the nodes of the deployment; kernels, precision, runtime and sharding may "
        "be told by the engine's log; more than 0 is inconclusive",
        PER_RECORD,
        MOEPLAN,
    ),
    Metric(
        "deployment_differences",
        "differences from the planned deployment",
        "count",
        "Values of the plan's deployment block that the engine shows otherwise: parallel sizes and precision.",
        "number of planned values of which any log or environment shows another; precision is the quantization where "
        "there is one, else the type; experts are spread over TP × DP ranks or not at all; a planned value that "
        "nothing shows leaves it inconclusive",
        "one engine start",
        "vLLM documentation, Expert Parallel Deployment",
    ),
    Metric(
        "draft_tokens_least",
        "drafted tokens, least of the trials",
        "tokens",
        "Tokens that the draft model proposed while a trial ran: whether speculation was on.",
        "growth of the engine's counter of draft tokens over each trial, the least; without such counters the largest "
        "figure of the log's 'SpecDecoding metrics', 0 where the log says that there is no speculation",
        "one trial; trials are judged alone and all must pass",
        "vLLM metrics, vllm:spec_decode_num_draft_tokens_total",
    ),
    Metric(
        "smoke_failures",
        "smoke tests that failed",
        "count",
        "Questions with a deadline that the engine did not answer to the end.",
        "number of smoke records that are not answered within their deadline, or lack a finish reason or output",
        PER_RECORD,
        MOEPLAN,
    ),
)
