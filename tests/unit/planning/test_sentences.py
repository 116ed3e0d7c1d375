"""Acceptance sentences follow the criteria: one a clause, with the criteria's own limits."""

from __future__ import annotations

import re

import attrs
import pytest

from moeplan.catalogue.registries import load_registry
from moeplan.model.plan import Gate, Scenario
from moeplan.planning.builder import plan
from moeplan.planning.sentences import Facts, acceptance_sentences

SCENARIO = Scenario(
    "kimi-k3",
    "h200",
    17,
    reserve_basis_points=705,
    input_tokens=12345,
    output_tokens=2048,
    concurrency=33,
    target_ttft_ms=1234,
    target_inter_token_ms=56,
    availability="ha",
)
GATES = plan(load_registry(), SCENARIO).validation_gates
FACTS = Facts(705, 12345, 2048, 33)


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.id)
def test_one_sentence_a_clause_from_the_criteria_alone(gate: Gate) -> None:
    clauses = list(dict.fromkeys(rule.clause for rule in gate.criteria))
    assert len(gate.acceptance_criteria) == len(clauses)
    assert acceptance_sentences(gate.criteria, FACTS) == gate.acceptance_criteria


def test_numbers_of_every_sentence() -> None:
    found = [re.findall("[0-9][0-9.,]*[0-9]%?|[0-9]", text) for gate in GATES for text in gate.acceptance_criteria[-3:]]
    assert found[2:] == [
        ["17", "7.05%"],
        [],
        [],
        [],
        ["12,345", "2,048", "33"],
        [],
        ["95", "1234"],
        ["95", "56"],
        ["33"],
        [],
        [],
        [],
        [],
    ]
    assert GATES[0].acceptance_criteria[0].count("moonshotai/Kimi-K3@9f62e4e9fffbd0a83ddd60e1c209d828994b3569") == 1


def test_a_changed_limit_changes_its_sentence() -> None:
    rules = GATES[4].criteria
    looser = (attrs.evolve(rules[0], limit=2_000_000_000), *rules[1:])
    before, after = acceptance_sentences(rules, FACTS), acceptance_sentences(looser, FACTS)
    assert after[0] == before[0].replace("1234", "2000")
    assert after[1:] == before[1:]
