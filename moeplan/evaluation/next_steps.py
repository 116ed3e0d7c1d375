"""The next step for each reason a criterion does not pass. Wording may change; reason codes may not."""

from __future__ import annotations

from moeplan.model.plan import Criterion

__all__ = ["REASONS", "next_step"]

_BY_TYPE = {
    "checkpoint_manifest": "digest the checkpoint with 'moeplan checkpoint digest DIR -o checkpoint.json' and pack it",
    "checkpoint_digest": "on each serving node, before the engine starts, run 'moeplan checkpoint digest DIR --record'",
    "serving_trial": "replay the workload and import it with 'moeplan import vllm-bench'",
    "engine_log": "keep the engine's log from its start; this release has no importer for it",
    "environment": "record image, drivers, arguments and sharding; this release has no collector for them",
    "memory_series": "record device and host memory idle, warm and at peak; this release has no importer for it",
    "expert_counts": "count expert selections per layer in the engine; this release has no importer for them",
    "communication_trace": "trace all-to-all communication; this release has no importer for it",
    "price": "state prices with their date; this release has no evidence type for them",
    "failure_timeline": "record one controlled worker failure under load; this release has no importer for it",
}

REASONS = {
    "above_limit": "the quantile is above the limit; change the deployment or the target, then measure again",
    "after_instant": "evidence lies after the instant of judgement; judge with a later --at",
    "batches_vary": "latency drifts within the trial; run longer trials",
    "binding_too_weak": "tie the evidence more strongly to the checkpoint: name the revision, hash on every node "
    "before the engine starts, and give the engine's counters",
    "bound_above_limit": "too few requests to bound the quantile; run longer trials",
    "comparator_not_judged": "a quantile is judged against a largest value only; plan the criterion with 'le'",
    "counters_contradict": "the engine counted more cached than prompt tokens; check which engine was scraped",
    "engine_start_unknown": "import with --metrics so that the engine's start is known",
    "evidence_taken_away": "restore what the inventory or a run manifest lists",
    "index_disagrees": "the checkpoint's index and its tensors disagree; fetch it again and digest it",
    "limit_not_met": "the observation does not meet the limit; change the deployment or the plan",
    "mixed_deployments": "keep records of one deployment in one bundle",
    "no_complete_requests": "no request completed; see the tool's errors",
    "no_engine_counters": "import with --metrics BEFORE AFTER…",
    "no_prompt_tokens": "the engine counted no prompt tokens in this trial; check which engine was scraped",
    "no_server_usage": "token counts must come from the server's usage; use a client that records it",
    "no_start_times": "the tool records no start times; use a client that does, such as 'moeplan collect endpoint'",
    "no_trusted_runner": "have the record signed by a runner the policy names",
    "no_values": "the trial holds no values of this metric",
    "node_not_hashed": "name the serving nodes and hash the checkpoint on each before the engine starts",
    "not_of_its_run": "the record is not the one its run manifest lists; restore the run as it was imported",
    "observation_aborted": "an observation was begun and left no record; run it again",
    "other_checkpoint": "the record was made on another checkpoint than the plan's",
    "other_plan": "the record was made for another plan",
    "other_runtime": "the record was made with another runtime than the plan's",
    "plan_value_missing": "the plan leaves this open; plan again with the value declared",
    "revision_not_named": "digest the checkpoint with --repository and --revision",
    "run_manifest_missing": "pack the run manifest with its trials",
    "run_named_twice": "two run manifests give one name; keep the one that was written when the run was made",
    "run_not_closed": "the run was interrupted; run it again to its end",
    "tensors_not_read": "the manifest holds no tensor; digest a checkpoint in safetensors, the one format that is read",
    "too_few_samples": "run longer trials",
    "too_few_trials": "run more trials of the same workload",
    "trial_aborted": "a trial was aborted; run it again",
    "trials_overlap": "trials of one deployment ran at the same time; run them one after another",
    "trial_repeated": "two trials hold the same raw data; each must be a measurement of its own",
    "trials_missing": "the run made fewer trials than planned; run it again to its end",
    "warmup_undeclared": "import with --warmup-requests so that the counters can be compared",
}


def next_step(
    reason: str | None, criterion: Criterion, requests_needed: int | None, present: frozenset[str] = frozenset()
) -> str:
    """Return one sentence that says what to do; ``present`` are the evidence types there is a record of."""
    if reason == "missing_evidence":
        kinds = dict.fromkeys(criterion.evidence_types)
        missing = [_BY_TYPE[kind] for kind in kinds if kind in _BY_TYPE and kind not in present]
        return "; ".join(missing) or "this release cannot judge the metric"
    if reason == "plan_value_missing" and criterion.metric == "prefix_cache_share_basis_points":
        return "declare the cached share the workload has: plan again with --prefix-cache-share-bps"
    if reason == "plan_value_missing" and criterion.metric == "checkpoint_root":
        return "plan again with --checkpoint checkpoint.json"
    text = REASONS.get(reason or "", "see the reason")
    return f"{text}, at least {requests_needed} requests a trial" if requests_needed is not None else text
