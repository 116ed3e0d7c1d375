"""Rules by the id of their fact."""

from __future__ import annotations

from types import MappingProxyType

from moeplan.facts.judge import Rule
from moeplan_infera import deployment, placeholders, placement, schema, storage

__all__ = ["RULES"]

RULES: MappingProxyType[str, Rule] = MappingProxyType(
    {**placeholders.RULES, **placement.RULES, **storage.RULES, **deployment.RULES, **schema.RULES}
)
"""Id of a fact → the code that judges what its data cannot say."""
