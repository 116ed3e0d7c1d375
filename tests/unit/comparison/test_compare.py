"""Side by side: what differs is shown, matched by name, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

from moeplan.catalogue.registries import load_registry
from moeplan.cli.main import main
from moeplan.comparison.compare import compare
from moeplan.errors import InputError
from moeplan.model.plan import Plan, Scenario
from moeplan.model.verdict import Verdict
from moeplan.planning.builder import plan
from moeplan.wire.documents import dump_document, load_document

ROOT = Path(__file__).parents[3]


def made(hardware: str = "h200", devices: int = 8) -> Plan:
    return plan(load_registry(), Scenario("kimi-k3", hardware, devices))


@pytest.fixture
def verdict() -> Verdict:
    return load_document((ROOT / "evidence" / "tiny-moe-cpu" / "verdict.json").read_bytes(), Verdict)


def test_plans() -> None:
    rows = {row.path: (row.left, row.right) for row in compare(made(), made("mi355x")).differences}
    assert rows["target.hardwareId"] == ("h200", "mi355x")
    assert rows["residency.bytesPerAccelerator"] == (141_000_000_000, 288_000_000_000)
    assert rows["residency.minimumAccelerators"] == (13, 7)
    assert rows["readiness.status"] == ("blocked", "validation_required")
    assert rows["readiness.staticResidency"] == ("fail", "pass")
    assert not any(path.startswith(("workload", "artifact")) for path in rows)
    assert not any("summary" in path or "title" in path for path in rows)


def test_equal_documents_have_no_difference() -> None:
    made_twice = compare(made(), made())
    assert made_twice.differences == ()
    assert len(made_twice.rows) > 100
    assert made_twice.left == made_twice.right


def test_criteria_are_matched_by_id_and_lists_by_name() -> None:
    first = made()
    gates = list(first.validation_gates)
    gates[2] = attrs.evolve(gates[2], criteria=gates[2].criteria[1:][::-1])
    lost = first.validation_gates[2].criteria[0]
    differences = compare(first, attrs.evolve(first, validation_gates=tuple(gates))).differences
    assert {row.path.split("[")[2].split("]")[0] for row in differences} == {lost.id}
    assert all(row.right is None for row in differences)


def test_verdicts(verdict: Verdict) -> None:
    other = attrs.evolve(verdict, readiness="inconclusive" if verdict.readiness != "inconclusive" else "ready")
    assert [row.path for row in compare(verdict, other).differences] == ["readiness"]


def test_two_kinds_cannot_be_compared(verdict: Verdict) -> None:
    with pytest.raises(InputError, match="two kinds"):
        compare(made(), verdict)


def test_a_row_is_typed() -> None:
    first = made()
    target = attrs.evolve(first.target, requested_accelerators=1)
    row = next(r for r in compare(first, attrs.evolve(first, target=target)).differences if "requested" in r.path)
    assert (row.left, row.right) == (8, 1)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], verdict: Verdict) -> None:
    paths = []
    for name, document in (("a", made()), ("b", made(devices=16)), ("v", verdict)):
        (tmp_path / name).write_bytes(dump_document(document))
        paths.append(str(tmp_path / name))
    assert main(["compare", paths[0], paths[1]]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split() == ["target.requestedAccelerators", "8", "16"] for line in lines)
    assert main(["compare", paths[0], paths[1], "--json"]) == 0
    read = json.loads(capsys.readouterr().out)
    assert {"path": "target.requestedAccelerators", "a": 8, "b": 16} in read["rows"]
    assert main(["compare", paths[0], paths[0]]) == 0
    assert capsys.readouterr().out.startswith("0 of ")
    assert main(["compare", paths[0], paths[2]]) == 2
    (tmp_path / "x").write_text("{}")
    assert main(["compare", paths[0], str(tmp_path / "x")]) == 2
