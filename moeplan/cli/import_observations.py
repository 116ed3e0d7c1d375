"""Actions of ``moeplan import`` that read one observation, not load trials: one module each, one row in the table."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import attrs

from moeplan.cli import (
    import_auto,
    import_dcgm,
    import_kubectl_events,
    import_kubectl_pods,
    import_lm_eval,
    import_nvidia_smi,
    import_price,
    import_probe,
    import_reported,
    import_restart_timeline,
    import_torch_trace,
    import_vllm_log,
    import_vllm_metrics,
)
from moeplan.cli.actions import Actions, add_action

__all__ = ["OBSERVATION_IMPORTS", "ObservationImport", "add_observation_imports"]


@attrs.frozen
class ObservationImport:
    """One action: its name, a phrase, an example, what declares its options, and what runs it."""

    name: str
    title: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


OBSERVATION_IMPORTS = (
    ObservationImport(
        "auto",
        "whatever the files are",
        import_auto.EXAMPLE,
        import_auto.add_arguments,
        import_auto.run,
    ),
    ObservationImport(
        "vllm-log",
        "a vLLM server's log",
        import_vllm_log.EXAMPLE,
        import_vllm_log.add_arguments,
        import_vllm_log.run,
    ),
    ObservationImport(
        "kubectl-pods",
        "the engine's pods, as kubectl lists them",
        import_kubectl_pods.EXAMPLE,
        import_kubectl_pods.add_arguments,
        import_kubectl_pods.run,
    ),
    ObservationImport(
        "kubectl-events",
        "the cluster's events, as kubectl lists them",
        import_kubectl_events.EXAMPLE,
        import_kubectl_events.add_arguments,
        import_kubectl_events.run,
    ),
    ObservationImport(
        "reported",
        "a tool's own figures without raw data",
        import_reported.EXAMPLE,
        import_reported.add_arguments,
        import_reported.run,
    ),
    ObservationImport(
        "lm-eval",
        "a run of lm-evaluation-harness",
        import_lm_eval.EXAMPLE,
        import_lm_eval.add_arguments,
        import_lm_eval.run,
    ),
    ObservationImport(
        "nvidia-smi",
        "the CSV of nvidia-smi",
        import_nvidia_smi.EXAMPLE,
        import_nvidia_smi.add_arguments,
        import_nvidia_smi.run,
    ),
    ObservationImport(
        "dcgm",
        "pages of NVIDIA's DCGM exporter",
        import_dcgm.EXAMPLE,
        import_dcgm.add_arguments,
        import_dcgm.run,
    ),
    ObservationImport(
        "vllm-metrics",
        "pages of an engine's /metrics",
        import_vllm_metrics.EXAMPLE,
        import_vllm_metrics.add_arguments,
        import_vllm_metrics.run,
    ),
    ObservationImport(
        "probe",
        "the records of an in-engine probe",
        import_probe.EXAMPLE,
        import_probe.add_arguments,
        import_probe.run,
    ),
    ObservationImport(
        "torch-trace",
        "traces of the torch profiler",
        import_torch_trace.EXAMPLE,
        import_torch_trace.add_arguments,
        import_torch_trace.run,
    ),
    ObservationImport(
        "restart-timeline",
        "the timeline of a worker's failure",
        import_restart_timeline.EXAMPLE,
        import_restart_timeline.add_arguments,
        import_restart_timeline.run,
    ),
    ObservationImport(
        "price",
        "a declared price",
        import_price.EXAMPLE,
        import_price.add_arguments,
        import_price.run,
    ),
)


def add_observation_imports(actions: Actions[argparse.ArgumentParser]) -> None:
    """Declare every action of the table; ``run_observation`` of the parsed arguments is what runs it."""
    for one in OBSERVATION_IMPORTS:
        action = add_action(actions, one.name, one.title, one.example, f"Import {one.title}.")
        one.add_arguments(action)
        action.set_defaults(run_observation=one.run)
