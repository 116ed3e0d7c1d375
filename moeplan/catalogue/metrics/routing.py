"""Metrics of routing_health."""

from __future__ import annotations

from moeplan.catalogue.metrics.metric import MOEPLAN, Metric

__all__ = ["METRICS"]

_ONE_LAYER = "one layer of one engine start"
_ONE_TOKEN = "one token's selections; tokens of one prompt hang together, so nothing is inferred beyond the run"
_ONE_STEP = "one traced step; steps of one run hang together"
_BALANCE = "vLLM 0.32, distributed/eplb: maximum over mean is the inverse of its balancedness; moeplan: rounding"
_HILL = "M. O. Hill, Ecology 54 (1973) 427, number of order 2; moeplan: over the number of experts"

METRICS = (
    Metric(
        "expert_layers_without_counts",
        "layers without expert counts",
        "count",
        "Mixture-of-experts layers for which no per-expert count was recorded.",
        "layers whose tensors the checkpoint manifest places under experts, layers of a drafter apart, for which a "
        "record holds no selection or counts fewer experts than the manifest lists; summed over the records",
        _ONE_LAYER,
        MOEPLAN,
    ),
    Metric(
        "routing_conservation_difference",
        "selections against tokens",
        "count",
        "Whether the counter saw every token: selections of a layer against those that the engine's token counters "
        "imply.",
        "greatest over layers and records of |selections - experts a token × (prompt tokens - cached prompt tokens + "
        "generated tokens - finished requests)|; with speculation or preemptions the law is not stated",
        _ONE_LAYER,
        "moeplan: the last generated token of a request is not fed back, a cached prompt token is not computed again",
    ),
    Metric(
        "expert_layers_short_of_tokens",
        "layers short of tokens",
        "count",
        "Layers that saw too few tokens for their load to say anything.",
        "number of layers with fewer selections than 100 × experts, that is 100 × experts / experts a token tokens; "
        "summed over the records",
        _ONE_LAYER,
        MOEPLAN,
    ),
    Metric(
        "expert_load_ratio_basis_points",
        "busiest expert over the mean",
        "basis_points",
        "Selections of a layer's busiest expert over the mean of its experts, of the worst layer.",
        "ceil(10000 × greatest count × experts / selections) over the whole record, greatest over layers and records",
        _ONE_TOKEN,
        _BALANCE,
    ),
    Metric(
        "expert_load_ratio_peak_basis_points",
        "busiest expert over the mean, worst stretch",
        "basis_points",
        "The same ratio at its worst over time: a layer that runs hot for a while is not hidden by the rest.",
        "as expert_load_ratio_basis_points over stretches: consecutive intervals joined until every layer has 100 "
        "× experts selections, what is left over belonging to the last; greatest over stretches, layers and records",
        _ONE_TOKEN,
        _BALANCE,
    ),
    Metric(
        "expert_effective_share_basis_points",
        "effective experts",
        "basis_points",
        "How many equally busy experts would be as concentrated as a layer is, over its number of experts.",
        "floor(10000 × (sum of counts)² / (sum of squared counts × experts)), least over layers and records",
        _ONE_TOKEN,
        _HILL,
    ),
    Metric(
        "expert_inactive_share_basis_points",
        "inactive experts, worst stretch",
        "basis_points",
        "Share of a layer's experts that were not selected at all in a stretch of the record.",
        "ceil(10000 × experts without a selection / experts), stretches as for expert_load_ratio_peak_basis_points, "
        "greatest over stretches, layers and records",
        _ONE_TOKEN,
        MOEPLAN,
    ),
    Metric(
        "hot_experts",
        "hot experts",
        "count",
        "Experts selected more than twice as often as the mean of their layer.",
        "experts with count × experts > 2 × selections of the layer, summed over layers and records",
        _ONE_TOKEN,
        MOEPLAN,
    ),
    Metric(
        "dead_experts",
        "dead experts",
        "count",
        "Experts that the whole record never saw selected.",
        "experts with count 0 in the whole record, summed over layers and records",
        _ONE_TOKEN,
        MOEPLAN,
    ),
    Metric(
        "dropped_tokens_unreported",
        "layers silent on dropped tokens",
        "count",
        "Layers whose record does not say how many tokens were dropped.",
        "number of such layers, summed over the records",
        _ONE_LAYER,
        MOEPLAN,
    ),
    Metric(
        "dropped_tokens",
        "dropped tokens",
        "tokens",
        "Tokens that an expert did not compute because it was full.",
        "sum over layers and records of what each layer reports, with the basis it names",
        _ONE_LAYER,
        MOEPLAN,
    ),
    Metric(
        "communication_samples",
        "communication samples",
        "count",
        "Samples that split a step into routing, all-to-all communication and the rest.",
        "moments of one rank at which step_ns, routing_ns, all_to_all_ns and collective_ns were all measured and the "
        "parts are no longer than the step, summed over the records",
        _ONE_STEP,
        MOEPLAN,
    ),
    Metric(
        "routing_time_share_basis_points",
        "share of time spent on routing",
        "basis_points",
        "Time that choosing experts takes of all traced steps, of the rank where it is greatest.",
        "ceil(10000 × sum of routing_ns / sum of step_ns) over a rank's samples, greatest over ranks and records; "
        "every rank of the world must be traced",
        _ONE_STEP,
        MOEPLAN,
    ),
    Metric(
        "all_to_all_share_basis_points",
        "share of time spent on all-to-all",
        "basis_points",
        "Time that exchanging tokens between ranks takes of all traced steps, of the rank where it is greatest.",
        "ceil(10000 × sum of all_to_all_ns / sum of step_ns) over a rank's samples, greatest over ranks and records; "
        "every rank of the world must be traced; exactly 0 in a world of one rank",
        _ONE_STEP,
        MOEPLAN,
    ),
)
