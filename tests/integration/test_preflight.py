"""A preflight's record in a signed bundle: it changes no verdict, and a table that is not its own is a fault."""

from __future__ import annotations

import json
from array import array
from pathlib import Path

import attrs
import pytest

from moeplan.cli.main import main
from moeplan.digest import digest_bytes
from moeplan.importers.preflight import PreflightInputs, import_preflight
from moeplan.importers.run import GivenFile
from moeplan.model.evidence import EvidenceRecord
from moeplan.model.plan import Plan
from moeplan.model.preflight import Imported, ImportedHost, ImportedRow, ImportedSection
from moeplan.model.tables import PreflightTable
from moeplan.wire.canonical import canonical_line
from moeplan.wire.documents import identify, load_document
from moeplan.wire.tables import dump_preflight

REPOSITORY = Path(__file__).resolve().parents[2]
KEY = REPOSITORY / "tests" / "data" / "published-test-key.pem"
AT = "2026-11-30T18:00:00Z"
ROW = ImportedRow(
    host="n1", probe="links", item="nic0", metric="bandwidth", unit="bytes_per_second", value=48, state="measured"
)


def imported(demo: Path, folder: Path, rows: tuple[ImportedRow, ...] = (ROW,)) -> Path:
    """Write the trials' import and a preflight of the same deployment; return the preflight's folder."""
    plan = load_document((demo / "plan.json").read_bytes(), Plan)
    trial = next(path for path in sorted((demo / "imported" / "evidence").iterdir()) if "trial" in path.name)
    deployment = load_document(trial.read_bytes(), EvidenceRecord).deployment
    host = ImportedHost("n1", "n1.json", None, "2026-11-30 17:00:30", (ImportedSection("links", "ok", "ok"),))
    stated = PreflightInputs("lamps", "made", "1.0", identify(plan), deployment, "2026-11-30T17:00:00Z", 0)
    made = import_preflight([GivenFile("n1.json", b"{}")], Imported(hosts=(host,), rows=rows), stated)
    for path, data in made.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


def verdict(demo: Path, folder: Path, evidence: list[Path]) -> tuple[int, str]:
    bundle = str(folder / "bundle")
    words = ["bundle", "create", bundle, "--plan", str(demo / "plan.json"), "--registry"]
    words += [str(REPOSITORY / "demo" / "registry.json"), "--checkpoint", str(demo / "checkpoint.json")]
    assert main([*words, "--evidence", *map(str, evidence)]) == 0
    assert main(["attest", bundle, "--key", str(KEY)]) == 0
    out = folder / "verdict.json"
    status = main(["verdict", bundle, "--policy", str(demo / "policy.json"), "--at", AT, "-o", str(out)])
    return status, out.read_text() if out.exists() else ""


def test_a_preflight_in_the_bundle_changes_no_outcome(demo: Path, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    before = json.loads(verdict(demo, tmp_path / "one", [demo / "imported"])[1])
    added = imported(demo, tmp_path / "preflight")
    after = json.loads(verdict(demo, tmp_path / "two", [demo / "imported", added])[1])
    assert len(after["evidence"]) == len(before["evidence"]) + 1
    outcomes = [[(c["id"], c["outcome"], c["binding"]) for gate in v["gates"] for c in gate["criteria"]]
                for v in (before, after)]  # fmt: skip
    assert outcomes[0] == outcomes[1]


TABLE = PreflightTable(
    ("n1",), ("links",), ("nic0",), ("bandwidth",), ("bytes_per_second",), array("q", [48]), ("measured",)
)


@pytest.mark.parametrize(
    ("table", "code"),
    [
        (dump_preflight(attrs.evolve(TABLE, host=("n2",))), "unknown_host"),
        (dump_preflight(attrs.evolve(TABLE, unit=("boolean",))), "out_of_range"),
        (dump_preflight(PreflightTable((), (), (), (), (), array("q"), ())), "row_count"),
        (b"PAR1 but no table PAR1", "not_parquet"),
    ],
)
def test_a_table_that_is_not_the_records_is_a_fault(
    table: bytes, code: str, demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = imported(demo, tmp_path / "preflight")
    [path] = folder.rglob("*.parquet")
    [document] = (folder / "evidence").iterdir()
    told = json.loads(document.read_bytes())
    path.write_bytes(table)
    for part in told["attachments"]:
        if part["role"] == "preflight":
            part |= {"size": len(table), "digest": digest_bytes(table)}
    document.write_bytes(canonical_line(told))
    status, _ = verdict(demo, tmp_path, [demo / "imported", folder])
    assert status == 4
    shown = capsys.readouterr().err
    assert {"unknown_host": "does not name", "out_of_range": "out of range", "row_count": "not the rows",
            "not_parquet": "footer does not fit"}[code] in shown  # fmt: skip


@pytest.mark.shared
@pytest.mark.parametrize(("example", "status", "errors"), [("bad", 1, 3), ("ok", 0, 0)])
def test_the_installed_plugin_judges_the_handed_examples(
    example: str, status: int, errors: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The format's description has one host as it should be and one with faults in every section."""
    file = REPOSITORY.parent / "shared" / "cases" / f"preflight_example_{example}.json"
    if not file.is_file():
        pytest.skip("the handed examples are not here")
    assert main(["preflight", str(file), "--json"]) == status
    told = json.loads(capsys.readouterr().out)
    assert told["summary"]["error"] == errors
    assert ("PRE-MEMLOCK" in {finding["id"] for finding in told["findings"]}) == (example == "bad")


def test_every_id_of_the_preflight_is_declared() -> None:
    """A finding of an id that a plugin does not declare is refused."""
    from moeplan_infera.preflight.rules import SHARED_IDS, preflight_facts
    from moeplan_vllm_rocm_aiter.plugin import moeplan_runtime

    declared = {rule.id for rule in moeplan_runtime().rules}
    assert declared >= {fact.id for fact in preflight_facts().facts}
    assert declared >= set(SHARED_IDS)


def test_checks_are_listed_for_a_profile(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["preflight", "--checks", "--plugin", "vllm-rocm-aiter"]
    assert main([*arguments, "--profile", "opt/disaggregated"]) == 0
    pair = capsys.readouterr().out
    assert "findmnt -T MODEL_DIRECTORY" in pair
    assert main([*arguments, "--profile", "opt/aggregated", "--json"]) == 0
    one = [check["id"] for check in json.loads(capsys.readouterr().out)["checks"]]
    assert "preflight-fleet" in pair
    assert "preflight-fleet" not in one, "it takes two nodes"
    assert "free-accelerators" in one
    for wrong in (["preflight"], [*arguments, "a.json"]):
        assert main(wrong) == 2
