"""Plans against the seed plan and against scenarios computed by another implementation."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from moeplan.catalogue.registries import load_registry
from moeplan.model.plan import Scenario
from moeplan.planning.builder import plan
from moeplan.planning.export import plan_bytes, plan_value_1_0_0
from moeplan.planning.scenario import parse_scenario

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
SEED = SHARED / "seeds" / "000_64962a8ffef66685.txt"
CASES = SHARED / "cases" / "plan_scenarios.jsonl"

pytestmark = pytest.mark.shared

MACHINE_TEXT = {"schemaVersion", "kind", "scenarioKey", "status", "id", "code", "evidenceClass", "resultClass"}
MACHINE_TEXT |= {"staticResidency", "runtimeCompatibility", "availability", "apiPath", "manifestUrl", "revision"}
MACHINE_TEXT |= {"modelId", "modelName", "repository", "hardwareId", "hardwareName", "runtime"}
MACHINE_TEXT |= {"apiVersion", "registryVersion"}


def numbers(text: str) -> list[str]:
    return re.findall(r"[0-9]+(?:[.,][0-9]+)*%?", text)


def compare(seed: Any, made: Any, path: str, key: str = "") -> int:
    """Compare a value with the seed's and return how many human sentences were met."""
    assert type(seed) is type(made), path
    if isinstance(seed, dict):
        assert list(seed) == list(made), path
        return sum(compare(seed[name], made[name], f"{path}.{name}", name) for name in seed)
    if isinstance(seed, list):
        assert len(seed) == len(made), path
        return sum(compare(*pair, f"{path}[{index}]") for index, pair in enumerate(zip(seed, made, strict=True)))
    if isinstance(seed, str) and key not in MACHINE_TEXT and key != "cli":
        assert numbers(seed) == numbers(made), path
        assert seed != made, f"{path}: the seed's own sentence"
        return 1
    if key == "cli":
        assert made == seed.replace("moemodels plan", "moeplan plan", 1), path
    else:
        assert made == seed, path
    return 0


def test_seed_plan_with_its_envelope() -> None:
    if not SEED.is_file():
        pytest.skip("the shared seed plan does not lie beside the repository")
    seed = json.loads(SEED.read_bytes())
    made = plan_bytes(plan(load_registry("1.0.0"), Scenario("kimi-k3", "h200", 8)), "1.0.0", envelope=True)
    assert made.count(b"\n") == 1
    assert compare(seed, json.loads(made), "$") == 80


def summary(made: dict[str, Any]) -> dict[str, Any]:
    """Return a plan of form 1.0.0 in the shape of a case's ``expect``."""
    del made["evidencePolicy"]["statement"], made["readiness"]["reason"]
    return {
        **{key: made[key] for key in ("schemaVersion", "kind", "scenarioKey", "artifact", "target", "workload")},
        "evidencePolicy": made["evidencePolicy"],
        "readiness": made["readiness"],
        "dimensions": {
            name: {"status": d["status"], "evidenceClass": d["evidenceClass"], "n_known": len(d["known"])}
            for name, d in made["dimensions"].items()
        },
        "gates": [[gate["id"], gate["order"], gate["status"]] for gate in made["validationGates"]],
        "n_risks": len(made["risks"]),
        "nextAction": made["nextAction"]["code"],
        "nextAction_ints": sorted(int(word) for word in re.findall("[0-9]+", made["nextAction"]["summary"])),
        "cli": made["reproducibility"]["cli"],
        "apiPath": made["reproducibility"]["apiPath"],
    }


def cases() -> list[Any]:
    if not CASES.is_file():
        return [pytest.param({}, marks=pytest.mark.skip("the shared scenarios do not lie beside the repository"))]
    return [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("version", ["1.0.0", "1.1.0"])
@pytest.mark.parametrize("case", cases())
def test_scenarios_of_another_implementation(case: dict[str, Any], version: str) -> None:
    made = plan_value_1_0_0(plan(load_registry(version), parse_scenario(case["input"])))
    assert summary(made) == case["expect"]
