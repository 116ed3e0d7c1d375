"""The next step for each reason a criterion does not pass. Wording may change; reason codes may not."""

from __future__ import annotations

from moeplan.model.plan import Criterion

__all__ = ["REASONS", "next_step"]

_BY_TYPE = {
    "checkpoint_manifest": "digest the checkpoint with 'moeplan checkpoint digest DIR -o checkpoint.json' and pack it",
    "checkpoint_digest": "on each serving node, before the engine starts, run 'moeplan checkpoint digest DIR --record'",
    "serving_trial": "replay the workload and import it with 'moeplan import vllm-bench'",
    "engine_log": "keep the engine's log from its first line and import it with 'moeplan import vllm-log'",
    "environment": "on each serving node, while the engine runs, run 'moeplan collect environment'",
    "smoke": "ask one question with a deadline: 'moeplan collect smoke'",
    "memory_series": "begin 'moeplan collect metrics' on each serving node before the engine starts, and load it",
    "expert_counts": "count expert selections with the probe in the engine and import them with 'moeplan import probe'",
    "communication_trace": "trace steps with the torch profiler and import them with 'moeplan import torch-trace'",
    "price": "state the price with its date: 'moeplan import price'",
    "quality_result": "run the task against the endpoint with lm-evaluation-harness and --log_samples, and import it: "
    "'moeplan import lm-eval'",
    "failure_timeline": "make one worker fail under load: 'moeplan collect restart'",
}

REASONS = {
    "above_limit": "the quantile is above the limit; change the deployment or the target, then measure again",
    "accelerators_unpriced": "the price covers fewer accelerators than planned; state the price of all of them",
    "after_instant": "evidence lies after the instant of judgement; judge with a later --at",
    "batches_vary": "latency drifts within the trial; run longer trials",
    "binding_too_weak": "tie the evidence more strongly to the checkpoint: name the revision, hash on every node "
    "before the engine starts, give the engine's counters, and for 'loaded' hash in the engine with the probe",
    "bound_above_limit": "too few requests to bound the quantile; run longer trials",
    "capacity_not_told": "poll the /metrics of an engine that tells its cache's size: 'moeplan collect metrics'",
    "communication_of_one_rank": "a world of one rank has no all-to-all; check which ranks the trace is of",
    "client_bottleneck": "the client adds more than it may to what the engine took; run it on a machine of its own, or "
    "with 'moeplan collect endpoint --tool'",
    "client_not_observed": "nothing shows what the client added; import with --metrics of an engine that tells its own "
    "request times",
    "comparator_not_judged": "a quantile is judged against a largest value only; plan the criterion with 'le'",
    "counters_contradict": "the engine counted more cached than prompt tokens; check which engine was scraped",
    "counting_on": "experts were counted in the engine start that served; run the trials in a start without counting",
    "counts_not_conserved": "the selections are not those that the engine's token counters imply; count again, from "
    "after the warm-up, with the counters read at the same moments",
    "currencies_differ": "keep prices of one currency in one bundle",
    "decode_counters_missing": "a decode process exposes no counters of prompt tokens; use a release that does",
    "decode_not_watched": "poll each decode process through all trials: collect metrics --endpoint decode=URL",
    "deployment_not_observed": "nothing shows a value that the plan decides; import the engine's log",
    "device_not_watched": "watch every accelerator and node of the deployment: collect metrics on each serving node",
    "device_total_unknown": "the tool tells no total of a device; use one that does",
    "drops_not_reported": "say for each layer how many tokens were dropped, and what tells it",
    "engine_start_unknown": "import with --metrics so that the engine's start is known",
    "environment_incomplete": "collect the environment on every serving node, and import the log",
    "evidence_taken_away": "restore what the inventory or a run manifest lists",
    "expert_layers_unknown": "no experts are seen in the checkpoint's tensors; pack the manifest of its safetensors",
    "index_disagrees": "the checkpoint's index and its tensors disagree; fetch it again and digest it",
    "layers_not_counted": "count every mixture-of-experts layer of the checkpoint, with all its experts",
    "limit_not_met": "the observation does not meet the limit; change the deployment or the plan",
    "loaded_bytes_differ": "the engine loaded other bytes than the checkpoint's files hold; fetch the checkpoint "
    "again, digest it on each node, and start the engine on it",
    "log_ends_early": "a trial runs outside the log; import the log as it is after the last trial",
    "log_of_other_start": "no log holds the engine start that served a trial; import the log of that start",
    "log_not_whole": "the log does not begin with the engine's first line; import it from there",
    "memory_part_not_exposed": "the engine does not tell this part; waive it, or use a release that does",
    "memory_part_not_told": "start the engine with the probe; give --probe-dir of all ranks to collect metrics",
    "mixed_deployments": "keep records of one deployment in one bundle",
    "more_accelerators": "the record was made on more accelerators than the plan asks for; plan with as many",
    "no_complete_requests": "no request completed; see the tool's errors",
    "no_engine_counters": "import with --metrics BEFORE AFTER…",
    "no_prompt_tokens": "the engine counted no prompt tokens in this trial; check which engine was scraped",
    "no_server_usage": "token counts must come from the server's usage; use a client that records it",
    "no_start_times": "the tool records no start times; use a client that does, such as 'moeplan collect endpoint'",
    "no_trusted_runner": "have the record signed by a runner the policy names",
    "no_values": "the trial holds no values of this metric",
    "node_not_hashed": "name the serving nodes and hash the checkpoint on each before the engine starts",
    "not_of_its_run": "the record is not the one its run manifest lists; restore the run as it was imported",
    "not_steady": "latency changes over the trial; warm up longer, leave the machine alone, and run longer trials",
    "observation_aborted": "an observation was begun and left no record; run it again",
    "other_checkpoint": "the record was made on another checkpoint than the plan's",
    "other_plan": "the record was made for another plan",
    "other_runtime": "the record was made with another runtime than the plan's",
    "phase_not_captured": "collect metrics from before the engine starts until it was loaded",
    "plan_value_missing": "the plan leaves this open; plan again with the value declared",
    "power_not_measured": "poll energy or power of every accelerator from before the trials to after: 'moeplan collect "
    "metrics'",
    "port_forward": "a trial through a port-forward measures the forwarding; send the load from within the cluster",
    "preemptions_not_conserved": "requests were preempted and computed again; count with fewer requests in flight",
    "quality_not_shown": "no number of documents shows this margin beside this reference; take a reference of more "
    "documents or a wider margin",
    "ranks_not_traced": "trace every rank of the world and import the traces together",
    "revision_not_named": "digest the checkpoint with --repository and --revision",
    "role_not_observed": "a role of the plan has no log; import each role's with --role",
    "routing_counters_missing": "read the engine's /metrics at the start and the end of the counted span",
    "run_manifest_missing": "pack the run manifest with its trials",
    "run_named_twice": "two run manifests give one name; keep the one that was written when the run was made",
    "run_not_closed": "the run was interrupted; run it again to its end",
    "series_has_hole": "a device was not read for more than three beats under load; collect again",
    "speculation_not_conserved": "rejected drafts were routed too; count with speculation off",
    "speculation_not_observed": "nothing tells of drafted tokens; import the trials with --metrics",
    "tensors_not_read": "the manifest holds no tensor; digest a checkpoint in safetensors, the one format that is read",
    "timeline_incomplete": "make the worker fail once under load, and go on until it is ready and requests complete",
    "too_few_documents": "answer every document of the task, and more of them",
    "too_few_samples": "run longer trials",
    "too_few_steps": "trace more steps; a step counts with its routing, all-to-all and collective time",
    "too_few_tokens": "count over more tokens: at least 100 × experts / experts a token",
    "too_few_trials": "run more trials of the same workload",
    "trial_aborted": "a trial was aborted; run it again",
    "trials_overlap": "trials of one deployment ran at the same time; run them one after another",
    "trial_repeated": "two trials hold the same raw data; each must be a measurement of its own",
    "trials_missing": "the run made fewer trials than planned; run it again to its end",
    "too_short": "the first requests of each stream weigh too much; run longer trials",
    "value_too_large": "the value is beyond 2^53 - 1; check the record",
    "warmup_hides": "the engine spent so long on the warm-up that slow requests may be among it; read the engine's "
    "/metrics after the warm-up",
    "warmup_not_observed": "nothing shows how long the warm-up took; read the engine's /metrics after the warm-up, or "
    "import them from an engine that tells its own request times",
    "warmup_undeclared": "import with --warmup-requests so that the counters can be compared",
    "workload_not_in_capture": "run a trial of the planned shape and concurrency while metrics are collected",
}


def next_step(
    reason: str | None, criterion: Criterion, requests_needed: int | None, present: frozenset[str] = frozenset()
) -> str:
    """Return one sentence that says what to do; ``present`` are the evidence types there is a record of."""
    if reason == "missing_evidence":
        kinds = dict.fromkeys(criterion.evidence_types)
        known = [kind for kind in kinds if kind in _BY_TYPE]
        # Where a record of every type is there, what is missing is in none of them.
        missing = [kind for kind in known if kind not in present] or known
        return "; ".join(_BY_TYPE[kind] for kind in missing) or "this release cannot judge the metric"
    if reason == "plan_value_missing" and criterion.metric == "prefix_cache_share_basis_points":
        return "declare the cached share the workload has: plan again with --prefix-cache-share-bps"
    if reason == "plan_value_missing" and criterion.metric == "checkpoint_root":
        return "plan again with --checkpoint checkpoint.json"
    text = REASONS.get(reason or "", "see the reason")
    if requests_needed is None:
        return text
    unit = "documents" if reason == "too_few_documents" else "requests a trial"
    return f"{text}, at least {requests_needed} {unit}"
