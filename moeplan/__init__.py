"""moeplan: may this mixture-of-experts checkpoint serve this workload on this hardware with this runtime?

``plan`` and ``evaluate`` are pure. The names below are the public API; each is imported when it is first used, so that
``import moeplan`` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from moeplan.errors import InputError, Issue, MoeplanError, PluginError, StoreError, UnsupportedError, VerificationError

if TYPE_CHECKING:
    from moeplan.auditing.audit import Audit, audit
    from moeplan.auditing.verification import VerifiedBundle, inspect_evidence_bundle, load_evidence_bundle
    from moeplan.catalogue.registries import load_registry
    from moeplan.checkpoint.manifest import digest_checkpoint, verify_checkpoint
    from moeplan.collectors.endpoint_target import TargetOptions
    from moeplan.collectors.environment import environment_record
    from moeplan.collectors.load_plan import Workload
    from moeplan.collectors.restart import RestartPlan
    from moeplan.collectors.restart_fault import CommandFault, Restart, signal_fault
    from moeplan.comparison.compare import compare
    from moeplan.diagnosis.diagnose import diagnose
    from moeplan.diagnosis.result import Diagnosis
    from moeplan.evaluation.evaluate import evaluate
    from moeplan.importers.scrapes import Scrape, read_scrapes
    from moeplan.importers.telemetry import TelemetryInputs, import_dcgm, import_nvidia_smi, import_vllm_metrics
    from moeplan.importers.vllm_log import LogInputs, import_vllm_log
    from moeplan.importers.vllm_log_lines import LogClock
    from moeplan.model.checkpoint import CheckpointManifest
    from moeplan.model.compatibility import CompatibilityReport
    from moeplan.model.evidence import EvidenceRecord
    from moeplan.model.manifest_set import ManifestSet
    from moeplan.model.plan import Plan, Scenario
    from moeplan.model.policy import Policy
    from moeplan.model.registry import Registry
    from moeplan.model.run_manifest import RunManifest
    from moeplan.model.site import Site
    from moeplan.model.site_probe import SiteProbe
    from moeplan.model.verdict import Verdict
    from moeplan.model.verified import EvidenceSet, Inspection
    from moeplan.planning.builder import plan
    from moeplan.site.merging import merge_probes
    from moeplan.site.probing import probe_cluster, probe_here
    from moeplan.site.reading import load_site, parse_partial_site, site_values
    from moeplan.wire.documents import dump_document, identify, load_document
    from moeplan.wire.observation import ObservationContext
    from moeplan.workflows.check import check
    from moeplan.workflows.choose_profile import choose_profiles
    from moeplan.workflows.collect_endpoint import CollectedRun, EndpointRun, collect_endpoint
    from moeplan.workflows.collect_metrics import MetricsRun, collect_metrics
    from moeplan.workflows.collect_restart import collect_restart
    from moeplan.workflows.collect_smoke import CollectedSmoke, collect_smoke
    from moeplan.workflows.collected import CollectedObservation
    from moeplan.workflows.diagnose import known_signatures
    from moeplan.workflows.environment import EngineTarget, PodTarget, see_environment
    from moeplan.workflows.lint import lint
    from moeplan.workflows.metrics_reader import Watched
    from moeplan.workflows.plan_on_site import plan_on_site
    from moeplan.workflows.preflight import PreflightReport, preflight
    from moeplan.workflows.render import render
    from moeplan.workflows.site import init_site

__all__ = [
    "Audit",
    "CheckpointManifest",
    "CollectedObservation",
    "CollectedRun",
    "CollectedSmoke",
    "CommandFault",
    "CompatibilityReport",
    "Diagnosis",
    "EndpointRun",
    "EngineTarget",
    "EvidenceRecord",
    "EvidenceSet",
    "InputError",
    "Inspection",
    "Issue",
    "LogClock",
    "LogInputs",
    "ManifestSet",
    "MetricsRun",
    "MoeplanError",
    "ObservationContext",
    "Plan",
    "PluginError",
    "PodTarget",
    "Policy",
    "PreflightReport",
    "Registry",
    "Restart",
    "RestartPlan",
    "RunManifest",
    "Scenario",
    "Scrape",
    "Site",
    "SiteProbe",
    "StoreError",
    "TargetOptions",
    "TelemetryInputs",
    "UnsupportedError",
    "Verdict",
    "VerificationError",
    "VerifiedBundle",
    "Watched",
    "Workload",
    "audit",
    "check",
    "choose_profiles",
    "collect_endpoint",
    "collect_metrics",
    "collect_restart",
    "collect_smoke",
    "compare",
    "diagnose",
    "digest_checkpoint",
    "dump_document",
    "environment_record",
    "evaluate",
    "identify",
    "import_dcgm",
    "import_nvidia_smi",
    "import_vllm_log",
    "import_vllm_metrics",
    "init_site",
    "inspect_evidence_bundle",
    "known_signatures",
    "lint",
    "load_document",
    "load_evidence_bundle",
    "load_registry",
    "load_site",
    "merge_probes",
    "parse_partial_site",
    "plan",
    "plan_on_site",
    "preflight",
    "probe_cluster",
    "probe_here",
    "read_scrapes",
    "render",
    "see_environment",
    "signal_fault",
    "site_values",
    "verify_checkpoint",
]

_ROOMS = {
    "Audit": "auditing.audit",
    "CheckpointManifest": "model.checkpoint",
    "CollectedObservation": "workflows.collected",
    "CollectedRun": "workflows.collect_endpoint",
    "CollectedSmoke": "workflows.collect_smoke",
    "CommandFault": "collectors.restart_fault",
    "CompatibilityReport": "model.compatibility",
    "Diagnosis": "diagnosis.result",
    "EndpointRun": "workflows.collect_endpoint",
    "EngineTarget": "workflows.environment",
    "EvidenceRecord": "model.evidence",
    "EvidenceSet": "model.verified",
    "Inspection": "model.verified",
    "LogClock": "importers.vllm_log_lines",
    "LogInputs": "importers.vllm_log",
    "ManifestSet": "model.manifest_set",
    "MetricsRun": "workflows.collect_metrics",
    "ObservationContext": "wire.observation",
    "Plan": "model.plan",
    "PodTarget": "workflows.environment",
    "Policy": "model.policy",
    "PreflightReport": "workflows.preflight",
    "Registry": "model.registry",
    "Restart": "collectors.restart_fault",
    "RestartPlan": "collectors.restart",
    "RunManifest": "model.run_manifest",
    "Scenario": "model.plan",
    "Scrape": "importers.scrapes",
    "Site": "model.site",
    "SiteProbe": "model.site_probe",
    "TargetOptions": "collectors.endpoint_target",
    "TelemetryInputs": "importers.telemetry",
    "Verdict": "model.verdict",
    "VerifiedBundle": "auditing.verification",
    "Watched": "workflows.metrics_reader",
    "Workload": "collectors.load_plan",
    "audit": "auditing.audit",
    "check": "workflows.check",
    "choose_profiles": "workflows.choose_profile",
    "collect_endpoint": "workflows.collect_endpoint",
    "collect_metrics": "workflows.collect_metrics",
    "collect_restart": "workflows.collect_restart",
    "collect_smoke": "workflows.collect_smoke",
    "compare": "comparison.compare",
    "diagnose": "diagnosis.diagnose",
    "digest_checkpoint": "checkpoint.manifest",
    "dump_document": "wire.documents",
    "environment_record": "collectors.environment",
    "evaluate": "evaluation.evaluate",
    "identify": "wire.documents",
    "import_dcgm": "importers.telemetry",
    "import_nvidia_smi": "importers.telemetry",
    "import_vllm_log": "importers.vllm_log",
    "import_vllm_metrics": "importers.telemetry",
    "init_site": "workflows.site",
    "inspect_evidence_bundle": "auditing.verification",
    "known_signatures": "workflows.diagnose",
    "lint": "workflows.lint",
    "load_document": "wire.documents",
    "load_evidence_bundle": "auditing.verification",
    "load_registry": "catalogue.registries",
    "load_site": "site.reading",
    "merge_probes": "site.merging",
    "parse_partial_site": "site.reading",
    "plan": "planning.builder",
    "plan_on_site": "workflows.plan_on_site",
    "preflight": "workflows.preflight",
    "probe_cluster": "site.probing",
    "probe_here": "site.probing",
    "read_scrapes": "importers.scrapes",
    "render": "workflows.render",
    "see_environment": "workflows.environment",
    "signal_fault": "collectors.restart_fault",
    "site_values": "site.reading",
    "verify_checkpoint": "checkpoint.manifest",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module 'moeplan' has no attribute {name!r}")
    value = getattr(import_module(f"moeplan.{_ROOMS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
