"""Adds what plugins know to a plan: criteria, as data, after the core's own in each gate."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from moeplan.errors import InputError, Issue
from moeplan.model.plan import Plan
from moeplan.model.plugin import GateCriterion

__all__ = ["with_criteria"]


def with_criteria(plan: Plan, added: Iterable[GateCriterion]) -> Plan:
    """Return the plan with further criteria, in the order of their ids within each gate.

    The acceptance sentences stay: they are those of the core's criteria.

    Raises:
        InputError: an id is taken, or a criterion claims to be the core's.
    """
    taken = {criterion.id for gate in plan.validation_gates for criterion in gate.criteria}
    by_gate: dict[str, list[GateCriterion]] = {}
    for one in sorted(added, key=lambda item: item.criterion.id):
        criterion = one.criterion
        if criterion.id in taken or "@" not in criterion.contributed_by:
            message = "criterion id taken" if criterion.id in taken else "no plugin's criterion"
            raise InputError(Issue(f"criterion {criterion.id}", "colliding_id", message, "an id of the plugin's own"))
        taken.add(criterion.id)
        by_gate.setdefault(one.gate, []).append(one)
    gates = tuple(
        attrs.evolve(gate, criteria=(*gate.criteria, *(one.criterion for one in by_gate.get(gate.id, ()))))
        for gate in plan.validation_gates
    )
    return attrs.evolve(plan, validation_gates=gates)
