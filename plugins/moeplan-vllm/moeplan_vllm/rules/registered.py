"""Rules by the id of their fact."""

from __future__ import annotations

from collections.abc import Mapping

from moeplan.facts.judge import Rule
from moeplan_vllm.rules import numbers, options, sharding

__all__ = ["RULES"]

RULES: Mapping[str, Rule] = {
    "C-DIV-001": sharding.cut_heads,
    "C-DIV-002": sharding.cut_experts,
    "C-DIV-003": sharding.cut_projections,
    "C-DIV-004": sharding.ranks_of_node,
    "C-DIV-006": sharding.kv_heads_of_context,
    "C-DIV-011": sharding.cut_shared,
    "C-SPC-001": numbers.speculation_in_stages,
    "C-SPC-004": numbers.draft_slots,
    "V-ARG-001": options.names,
    "V-ARG-002": options.values,
}
"""Id of a fact → the code that judges what its data cannot say."""
