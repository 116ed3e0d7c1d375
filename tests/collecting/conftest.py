"""What the collectors' tests share: a plan and a checkpoint manifest, and one command of the whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from moeplan.cli.main import main

DEMO = Path(__file__).resolve().parents[2] / "demo"


@pytest.fixture(scope="session")
def stated(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the options that name plan, checkpoint and runtime."""
    path = tmp_path_factory.mktemp("stated")
    assert main(["checkpoint", "digest", str(DEMO / "tiny-moe"), "-o", str(path / "checkpoint.json")]) == 0
    assert main(["plan", "kimi-k3", "h200", "--devices", "16", "--output", str(path / "plan.json")]) == 0
    return [
        *("--plan", str(path / "plan.json"), "--checkpoint", str(path / "checkpoint.json")),
        *("--runtime-packages", str(DEMO / "runtime-packages.txt")),
    ]


class Collected:
    """A directory that a collector wrote."""

    def __init__(self, root: Path, told: dict[str, Any]) -> None:
        self.root, self.told = root, told
        documents = [json.loads(path.read_bytes()) for path in sorted((root / "evidence").glob("*.json"))]
        self.run = next(one for one in documents if one["kind"] == "run_manifest")
        self.records = [one for one in documents if one["kind"] == "evidence_record"]

    def table(self, name: str, trial: int = 1) -> list[dict[str, Any]]:
        """Return the rows of one raw table, read by pyarrow alone."""
        (path,) = self.root.rglob(f"trial-{trial}-{name}.parquet")
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
        return rows

    def codes(self) -> set[str]:
        """Return the codes of what was found."""
        return {item["code"] for item in self.told["findings"]}


@pytest.fixture
def collect(
    stated: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, Collected]]:
    """Return a function that runs ``collect endpoint`` against a URL and gives exit code and directory."""

    def run(url: str, *more: str, out: str = "out") -> tuple[int, Collected]:
        words = ["collect", "endpoint", "--url", url, "--tokenizer", str(DEMO / "tiny-moe"), *stated]
        capsys.readouterr()
        code = main([*words, *more, "-o", str(tmp_path / out), "--json"])
        return code, Collected(tmp_path / out, json.loads(capsys.readouterr().out))

    return run
