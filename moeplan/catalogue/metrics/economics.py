"""Metrics of economics_resilience."""

from __future__ import annotations

from moeplan.catalogue.metrics.metric import MOEPLAN, PER_TRIAL, Metric

__all__ = ["METRICS"]

_ONE_FAILURE = "one failure; another may take longer, so nothing is inferred beyond those recorded"

METRICS = (
    Metric(
        "cost_inputs_missing",
        "cost inputs missing",
        "count",
        "Inputs of a cost for each million successful output tokens that are absent: price, duration, tokens.",
        "1 where there is no price, 1 where there is no trial, and 1 for each trial without a complete request whose "
        "tokens the server counted",
        PER_TRIAL,
        MOEPLAN,
    ),
    Metric(
        "cost_micros_per_million_output_tokens",
        "cost of a million output tokens",
        "micros",
        "Millionths of the price's currency for one million output tokens of requests that completed.",
        "ceil(10⁶ × price of an accelerator and hour in millionths × accelerators × duration in ns / (3.6 × 10¹² × "
        "output tokens of complete requests by the server's usage)), greatest over trials and prices",
        PER_TRIAL,
        MOEPLAN,
    ),
    Metric(
        "energy_millijoules_per_output_token",
        "energy an output token",
        "millijoules",
        "Energy of the accelerators alone, from measured energy or power, for one output token of requests that "
        "completed. Asked for with --energy-at-most.",
        "ceil(sum over accelerators / output tokens of complete requests by the server's usage), over the whole "
        "seconds that enclose a trial, greatest over trials; of each accelerator the difference of its energy counter, "
        "else the sum of time between two readings of power × the greater of both",
        PER_TRIAL,
        "DCGM, DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION and DCGM_FI_DEV_POWER_USAGE; nvidia-smi, power.draw",
    ),
    Metric(
        "worker_failures_recorded",
        "worker failures recorded",
        "count",
        "Controlled worker failures with failure, recovery and the gap in service on one timeline.",
        "records with a request completed before the one fault_injected event, a health_status other than 200 after "
        "it, 200 from some moment on to the end, and a request completed after that moment",
        _ONE_FAILURE,
        MOEPLAN,
    ),
    Metric(
        "restart_seconds",
        "time to restart",
        "s",
        "From the fault to the moment from which the worker's health is good again.",
        "ceil of (first health_status 200 after the last other one, minus fault_injected) in seconds, greatest over "
        "the records",
        _ONE_FAILURE,
        MOEPLAN,
    ),
    Metric(
        "interruption_ns",
        "gap in service",
        "ns",
        "The longest time around the failure in which no request completed.",
        "greatest difference between the ends of two complete requests in a row, of those whose later end is after the "
        "fault and whose earlier end is before the worker is ready again; greatest over the records",
        _ONE_FAILURE,
        MOEPLAN,
    ),
    Metric(
        "requests_lost_in_failure",
        "requests lost in a failure",
        "requests",
        "Requests of a controlled worker failure's timeline that did not complete.",
        "number of requests whose outcome is not complete, summed over the records",
        _ONE_FAILURE,
        MOEPLAN,
    ),
    Metric(
        "requests_served_in_failure",
        "requests served during a failure",
        "requests",
        "Requests that were sent after the fault and completed before the worker was ready again.",
        "number of such requests, least over the records",
        _ONE_FAILURE,
        MOEPLAN,
    ),
)
