"""``moeplan collect smoke``: answered, late, an error; each is a record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moeplan.cli.main import main
from tests.stub_server.server import serving


def smoke(url: str, stated: list[str], out: Path, *more: str) -> tuple[int, dict[str, Any], dict[str, Any]]:
    code = main(["collect", "smoke", "--url", url, *stated, *more, "-o", str(out)])
    documents = [json.loads(path.read_bytes()) for path in (out / "evidence").glob("*.json")]
    record = next(one for one in documents if one["kind"] == "evidence_record")
    return code, record, next(one for one in documents if one["kind"] == "run_manifest")


@pytest.mark.parametrize(
    ("behaviour", "exit_code", "outcome", "status", "finish", "tokens"),
    [
        ("ok", 0, "answered", 200, "length", 16),
        ("hang_before_headers", 1, "late", None, None, None),
        ("hang_mid_stream", 1, "late", 200, None, None),
        ("stream_error", 1, "error", 200, None, None),
        ("too_many", 1, "error", 429, None, None),
        ("early_end", 1, "error", 200, None, None),
        ("gzipped", 1, "error", 200, None, None),
    ],
)
def test_each_outcome_is_a_record(
    behaviour: str,
    exit_code: int,
    outcome: str,
    status: int | None,
    finish: str | None,
    tokens: int | None,
    stated: list[str],
    tmp_path: Path,
) -> None:
    with serving(behaviour) as stub:
        more = ("--output-tokens", "16", "--deadline", "0.7")
        code, record, run = smoke(stub.url, stated, tmp_path / "out", *more)
    payload = record["payload"]
    assert (code, payload["outcome"], payload["httpStatus"]) == (exit_code, outcome, status)
    assert (payload["finishReason"], payload["outputTokens"]) == (finish, tokens)
    assert payload["deadlineNs"] == 700_000_000
    assert payload["elapsedNs"] <= 950_000_000
    assert record["engineStart"] == "2026-11-30T17:28:54Z"  # 1796059734, by date -u -d @1796059734
    assert (run["state"], run["announced"], run["plannedTrials"]) == ("closed", True, 0)
    assert [one["type"] for one in run["observations"]] == ["smoke"]


def test_1024_tokens_are_asked_for_unless_said_otherwise(stated: list[str], tmp_path: Path) -> None:
    with serving("ok", pace_s=0) as stub:
        _, record, _ = smoke(stub.url, stated, tmp_path / "out")
    assert stub.bodies[0]["max_tokens"] == record["payload"]["requestedOutputTokens"] == 1024
    assert record["payload"]["outputTokens"] == 1024
    assert "ignore_eos" not in stub.bodies[0]
