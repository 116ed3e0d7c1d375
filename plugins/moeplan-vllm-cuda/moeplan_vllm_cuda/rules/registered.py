"""Rules by the id of their fact: vLLM's and NVIDIA's."""

from __future__ import annotations

from collections.abc import Mapping

from moeplan_vllm.rules.registered import RULES as VLLM_RULES

from moeplan.facts.judge import Rule
from moeplan_vllm_cuda.rules import drafts, memory, pairs, pods, references, variables

__all__ = ["RULES"]

RULES: Mapping[str, Rule] = {
    **VLLM_RULES,
    "C-DS-001": variables.autotune,
    "C-ENV-001": variables.unknown_variables,
    "C-ENV-004": memory.host_memory,
    "C-ENV-007": variables.parsers,
    "C-MEM-001": memory.model_too_large,
    "C-MEM-002": memory.fewer_than("h200", 16),
    "C-MEM-003": memory.fewer_than("h100", 32),
    "C-NET-001": pods.interfaces,
    "C-NET-010": pods.shared_memory,
    "C-NET-011": pods.stage_timeout,
    "C-PD-001": pairs.announced_address,
    "C-PD-002": pairs.distinct_ports,
    "C-PD-003": pairs.same_build,
    "C-PD-006": pairs.expandable_segments,
    "C-PD-007": pairs.same_sizes,
    "C-PD-013": pairs.failure_policy,
    "C-PD-018": pairs.devices_and_locks,
    "C-SPC-002": drafts.block_of_tokens,
    "C-SPC-009": pairs.same_speculation,
    "C-SPC-010": pairs.same_layers,
    "C-TIM-001": pods.ready_timeout,
    "C-TIM-002": pods.probes,
    "C-TIM-003": pods.storage,
    "V-POD-001": references.undeclared,
}
"""Id of a fact → the code that judges what its data cannot say."""
