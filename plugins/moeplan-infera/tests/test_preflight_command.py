"""``moeplan preflight`` and ``moeplan import infera-preflight`` with a plugin that re-exports the library."""

from __future__ import annotations

import copy
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from preflight_hosts import host, text, tool_finding

from moeplan.catalogue.registries import load_registry
from moeplan.cli.main import main
from moeplan.model.evidence import EvidenceRecord, Preflight
from moeplan.model.plan import Scenario
from moeplan.planning.builder import plan
from moeplan.wire.documents import dump_document, load_document
from tests.build import make_checkpoint

PLUGIN = """
from moeplan.hooks.specs import hookimpl
from moeplan.model.plugin import FindingRule, RuntimeInfo
from moeplan_infera.preflight import hooks as preflight
from moeplan_infera.preflight.rules import SHARED_IDS

MOEPLAN_API = 1

@hookimpl
def moeplan_runtime():
    shared = tuple(FindingRule(name, "made") for name in SHARED_IDS)
    return RuntimeInfo("vllm", "made", "made", "1.0", (), (*preflight.rules(), *shared))

@hookimpl
def moeplan_importers():
    return preflight.importers()

@hookimpl
def moeplan_import(request, site):
    return preflight.import_files(request, site)
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a directory; the plugin ``made`` is installed in it."""
    (tmp_path / "made_preflight.py").write_text(PLUGIN, "utf-8")
    metadata = tmp_path / "made-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: made\nVersion: 1.0\n", "utf-8")
    (metadata / "entry_points.txt").write_text("[moeplan]\nmade = made_preflight\n", "utf-8")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("made_preflight", None)


def write(directory: Path, *hosts: dict[str, Any]) -> list[str]:
    names = []
    for one in hosts:
        name = f"{one['host']}.json"
        (directory / name).write_text(text(one), "utf-8")
        names.append(name)
    return names


def pair() -> tuple[dict[str, Any], dict[str, Any]]:
    return copy.deepcopy(host()), copy.deepcopy(host("node-b", "node-a", 2))


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    capsys.readouterr()
    status = main([*words, "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_healthy_hosts_exit_0_with_hosts_and_comparisons(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, told = run(capsys, "preflight", *write(made, *pair()), "--plugin", "made")
    assert status == 0
    assert set(told) == {"findings", "summary", "hosts", "comparisons"}
    assert {one["id"] for one in told["findings"]} == {"PRE-GID-UNNAMED"}
    first = told["findings"][0]
    assert {"id", "plugin", "severity", "file", "line", "column", "path", "message", "consequence", "silent", "remedy",
            "sources"} <= set(first)  # fmt: skip
    assert (first["plugin"], first["file"], first["line"]) == ("made", "node-a.json", None)
    assert told["summary"]["judged"] == {"made": 26}  # 13 sections of two hosts
    assert [one["host"] for one in told["hosts"]] == ["node-a", "node-b"]
    assert {one["outcome"] for one in told["comparisons"]} == {"same", "ok"}


def test_an_error_exits_1_and_is_shown_to_people(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = pair()
    first["sections"]["mooncake"][3] = tool_finding("fail", "node-b -> node-a rdma-gpu0", reason="unreachable")
    names = write(made, first, second)
    assert main(["preflight", *names, "--plugin", "made"]) == 1
    shown = capsys.readouterr().out
    assert (
        "node-a.json $.sections.mooncake[3]: error R-PD-008: node-a: node-b -> node-a rdma-gpu0: unreachable" in shown
    )
    assert "RDMA between hosts" in shown
    assert run(capsys, "preflight", *names, "--plugin", "made")[0] == 1


def test_where_all_was_skipped_nothing_is_judged(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = copy.deepcopy(host())
    one["sections"] = {"mooncake": [tool_finding("warn", "mooncake skipped (python bindings not importable)")]}
    status, told = run(capsys, "preflight", *write(made, one), "--plugin", "made")
    assert status == 3
    assert told["summary"]["judged"] == {}
    assert [one["what"] for one in told["summary"]["notJudged"]] == ["node-a: mooncake"]


def test_the_site_is_compared(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (made / "site.yaml").write_text("acceleratorsPerNode: 8\n", "utf-8")
    status, told = run(capsys, "preflight", *write(made, *pair()), "--plugin", "made", "--site", "site.yaml")
    assert status == 0
    assert [one["id"] for one in told["findings"]].count("PRE-SITE") == 2


@pytest.mark.parametrize(
    ("content", "code"), [("{", "invalid_json"), ('{"nics": []}', "not_infera_preflight"), ("\xff", "wrong_encoding")]
)
def test_another_file_is_malformed_and_exits_2(
    content: str, code: str, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (made / "x.json").write_bytes(content.encode("latin-1"))
    status, told = run(capsys, "preflight", "x.json", "--plugin", "made")
    assert (status, told["error"]["code"]) == (2, code)
    assert told["error"]["path"].startswith("x.json")


def test_a_format_that_no_plugin_reads_exits_2(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, told = run(capsys, "preflight", *write(made, host()), "--plugin", "made", "--format", "other")
    assert (status, told["error"]["code"], told["error"]["expected"]) == (2, "unknown_format", "infera-preflight")


def imported(
    made: Path, capsys: pytest.CaptureFixture[str], *words: str, named: tuple[str, ...] = ("--host-names",)
) -> tuple[int, Any]:
    (made / "plan.json").write_bytes(dump_document(plan(load_registry(), Scenario("kimi-k3", "h200", 8))))
    (made / "checkpoint.json").write_bytes(dump_document(make_checkpoint()))
    names = write(made, *pair())
    return run(
        capsys, "import", "infera-preflight", *names, "--plan", "plan.json", "--checkpoint", "checkpoint.json",
        "--runtime-packages", "sha256:" + "5" * 64, "--utc-offset", "+00:00", "--plugin", "made",
        "-o", "out", *named, *words,
    )  # fmt: skip


def test_import_writes_one_record_with_its_table(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, told = imported(made, capsys, "--started", "2026-08-20T09:00:00Z")
    assert status == 0
    (listed,) = told["records"]
    record = load_document((made / "out" / listed["path"]).read_bytes(), EvidenceRecord)
    assert isinstance(record.payload, Preflight)
    assert record.payload.read_by == "made@1.0"
    assert record.deployment.checkpoint_root == make_checkpoint().root
    [table] = [part for part in record.attachments if part.role == "preflight"]
    read = pq.read_table(made / "out" / str(table.path))
    # Of each host: 3 host, 1 + 8 GPUs, 1 firmware, 2 ports, 2 MTU, 4 GEMM, 4 HBM, 12 pairs, 4 links, 3 proven
    # transfers of Mooncake and 1 of Mori with two rows each, 1 failed.
    assert read.num_rows == listed["rows"] == 2 * (3 + 9 + 1 + 2 + 2 + 4 + 4 + 12 + 4 + 6 + 2 + 1)
    links = [row["value"] for row in read.to_pylist() if row["probe"] == "netperf"]
    assert links == [48_000_000_000] * 8
    assert sorted(part.name for part in record.attachments if part.role == "tool_output") == [
        "tool-output-1.json",
        "tool-output-2.json",
    ]


def test_hosts_are_recorded_as_pseudonyms(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hidden = ("--pseudonym-key", str(made / "site.key"))
    assert imported(made, capsys, "--started", "2026-08-20T09:00:00Z", named=hidden)[0] == 0
    for path in (made / "out").rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        table = str(pq.read_table(path).to_pylist()).encode() if path.suffix == ".parquet" else content
        # A pseudonym may begin with the same letter.
        assert re.search(rb"node-[ab](?![0-9a-f])", content + table) is None, path


def test_import_of_an_older_file_writes_nothing(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, told = imported(made, capsys, "--started", "2026-08-20T10:00:00Z")
    assert (status, told["error"]["code"]) == (2, "older_file")
    assert not (made / "out").exists()


def test_an_unknown_tool_is_told_with_those_that_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "foo", "a.json"]) == 2
    told = capsys.readouterr().err
    assert "no such tool; expected one of " in told
    assert "vllm-bench, " in told
    assert "infera-preflight, got 'foo'" in told
