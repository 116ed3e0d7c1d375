"""lm-evaluation-harness: answers document by document, its figures borne out, none of its texts in the record."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moeplan.errors import InputError
from moeplan.importers.lm_eval import LmEvalFile, import_lm_eval
from moeplan.model.finding import Finding
from moeplan.model.observations import QualityResult
from moeplan.wire.closed_table import load_table
from moeplan.wire.observation import MadeObservation, ObservationContext
from moeplan.wire.series import QUALITY
from tests.build import build_plan, make_deployment, plan_identity

SAMPLES = Path(__file__).resolve().parents[3].parent / "shared" / "samples"
MADE = SAMPLES / "made" / "lm-eval-0.4.13"
shared = [
    pytest.mark.shared,
    pytest.mark.skipif(not SAMPLES.is_dir(), reason="the shared samples do not lie beside the repository"),
]
CONTEXT = ObservationContext(plan_identity(build_plan()), make_deployment())


def sample(document: int, right: float, kept: str = "none", **changed: Any) -> dict[str, Any]:
    base = {"doc_id": document, "filter": kept, "metrics": ["acc"], "acc": right, "doc": {"q": "SECRET-QUESTION"}}
    hashes = {key: hashlib.sha256(f"{key}{document}".encode()).hexdigest() for key in HASHES}
    return base | hashes | {"resps": "SECRET-ANSWER"} | changed


HASHES = ("doc_hash", "prompt_hash", "target_hash")


def lines(*samples: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in samples)


def results(samples: dict[str, list[dict[str, Any]]], figures: dict[str, Any], **changed: Any) -> bytes:
    hashes = {
        task: hashlib.sha256("".join(each[key] for each in given for key in HASHES).encode()).hexdigest()
        for task, given in samples.items()
    }
    document = {
        "results": figures,
        "versions": {},
        "n-samples": {task: {"original": len(given), "effective": len(given)} for task, given in samples.items()},
        "date": 1796058805.25,
        "lm_eval_version": "0.4.13",
        "total_evaluation_time_seconds": "6.5",
        "task_hashes": hashes,
    }
    return json.dumps(document | changed).encode()


FOUR = [sample(0, 1.0), sample(1, 0.0), sample(2, 1.0), sample(3, 1.0)]
RIGHT = {"toy": {"acc,none": 0.75, "acc_stderr,none": 0.25}}
"""Three of four: p = 3/4; the standard error is the root of (3/16)/3 = 1/16."""


def imported(*files: bytes, **options: Any) -> tuple[MadeObservation, tuple[Finding, ...]]:
    given = [LmEvalFile(f"file-{place}", data) for place, data in enumerate(files)]
    return import_lm_eval(given, CONTEXT, **options)


def refusal(*files: bytes) -> tuple[str, str]:
    with pytest.raises(InputError) as caught:
        imported(*files)
    return caught.value.issues[0].path, caught.value.issues[0].code


def table_of(made: MadeObservation) -> Any:
    (path,) = [part.path for part in made.record.attachments if part.role == "quality"]
    assert path is not None
    return load_table(QUALITY, made.files[path])


def test_a_record_by_hand() -> None:
    made, findings = imported(lines(*FOUR), results({"toy": FOUR}, RIGHT))
    payload = made.record.payload
    assert isinstance(payload, QualityResult)
    (task,) = payload.tasks
    assert (task.task, task.metric, task.correct, task.documents) == ("toy", "acc", 3, 4)
    table = table_of(made)
    assert list(table.document) == [0, 1, 2, 3]
    assert list(table.correct) == [1, 0, 1, 1]
    assert (made.record.interval.start, made.record.interval.end) == ("2026-11-30T17:13:25Z", "2026-11-30T17:13:32Z")
    assert (made.record.collector.tool, made.record.collector.tool_version) == ("lm-eval", "0.4.13")
    assert findings == ()


def test_texts_stay_out_unless_asked_for() -> None:
    files = lines(*FOUR), results({"toy": FOUR}, RIGHT)
    closed, _ = imported(*files)
    assert not any(b"SECRET" in data for data in closed.files.values())
    assert {part.role for part in closed.record.attachments if part.path is None} == {"tool_output", "tool_summary"}
    half, _ = imported(*files, enclose=frozenset({"tool_summary"}))
    assert not any(b"SECRET" in data for data in half.files.values())
    opened, _ = imported(*files, enclose=frozenset({"tool_output"}))
    assert any(b"SECRET" in data for data in opened.files.values())


def test_filters_are_measures_of_their_own_and_others_are_named() -> None:
    given = [sample(0, 1.0, "strict"), sample(1, 1.0, "strict"), sample(0, 1.0, "loose"), sample(1, 0.0, "loose")]
    given += [sample(0, 0.5, "none"), sample(1, 0.25, "none")]
    made, findings = imported(lines(*given), results({"toy": given}, {"toy": {"acc,strict": 1.0, "acc,loose": 0.5}}))
    assert isinstance(made.record.payload, QualityResult)
    assert [(task.metric, task.correct) for task in made.record.payload.tasks] == [("acc.loose", 1), ("acc.strict", 2)]
    assert ("measure_not_binary", "toy") in [(each.code, each.where) for each in findings]


@pytest.mark.parametrize(
    ("figures", "changed", "code"),
    [
        ({"toy": {"acc,none": 0.7500001, "acc_stderr,none": 0.25}}, {}, "claim_mismatch"),
        ({"toy": {"acc,none": 0.75, "acc_stderr,none": 0.26}}, {}, "claim_mismatch"),
        ({"toy": {}}, {}, "claim_missing"),
        (RIGHT, {"n-samples": {"toy": {"original": 5, "effective": 5}}}, "documents_missing"),
        (RIGHT, {"n-samples": {"toy": {"original": 9, "effective": 4}}}, "documents_limited"),
    ],
)
def test_what_the_samples_do_not_bear_out(figures: dict[str, Any], changed: dict[str, Any], code: str) -> None:
    _, findings = imported(lines(*FOUR), results({"toy": FOUR}, figures, **changed))
    assert [finding.code for finding in findings] == [code]


def test_a_task_without_its_samples_is_named() -> None:
    other = [sample(7, 0.0)]
    figures = RIGHT | {"other": {"acc,none": 0.0}}
    _, findings = imported(lines(*FOUR), results({"toy": FOUR, "other": other}, figures))
    assert [finding.code for finding in findings] == ["samples_missing"]
    made, findings = imported(lines(*FOUR), results({"toy": FOUR, "other": other}, figures), lines(*other))
    assert isinstance(made.record.payload, QualityResult)
    assert [task.task for task in made.record.payload.tasks] == ["other", "toy"]
    assert findings == ()


OLD = b'{"results": {"toy": {"acc": 0.75, "acc_stderr": 0.25}}, "versions": {"toy": 0}, "config": {}}'


@pytest.mark.parametrize(
    ("files", "refused"),
    [
        ((lines(*FOUR),), ("FILE", "results_count")),
        ((results({"toy": FOUR}, RIGHT), results({"toy": FOUR}, {})), ("FILE", "results_count")),
        ((results({"toy": FOUR}, RIGHT),), ("$", "raw_data_missing")),
        ((OLD,), ("$.task_hashes", "raw_data_missing")),
        ((b"[]", lines(*FOUR)), ("$", "wrong_file")),
        ((results({"toy": FOUR}, RIGHT), lines(*FOUR[1:])), ("$", "samples_differ")),
        ((results({"toy": FOUR}, RIGHT), lines(*FOUR)[:-9]), ("line 4: $", "partial_file")),
        ((results({"toy": FOUR}, RIGHT), lines(*FOUR), lines(*FOUR) + b"\n"), ("FILE", "duplicate_task")),
        ((results({"toy": FOUR[:1] * 2}, RIGHT), lines(*FOUR[:1] * 2)), ("line 2: $.doc_id", "duplicate_document")),
        ((results({"toy": FOUR}, RIGHT), b'{"a": 1}\n{"b": 1}\n'), ("line 1: $", "wrong_file")),
        ((results({"a b": FOUR}, RIGHT), lines(*FOUR)), ("$", "invalid_name")),
        ((results({"toy": FOUR}, RIGHT), lines(FOUR[0] | {"doc_id": 2**63})), ("line 1: $", "wrong_file")),
        (
            (results({"toy": FOUR}, RIGHT, total_evaluation_time_seconds="NaN"), lines(*FOUR)),
            ("$.total_evaluation_time_seconds", "invalid_value"),
        ),
        ((results({"toy": FOUR}, RIGHT, date="x"), lines(*FOUR)), ("$.date", "invalid_value")),
        (
            (results({"toy": FOUR}, RIGHT, total_evaluation_time_seconds="-1"), lines(*FOUR)),
            ("$.total_evaluation_time_seconds", "invalid_value"),
        ),
    ],
)
def test_refusals(files: tuple[bytes, ...], refused: tuple[str, str]) -> None:
    assert refusal(*files) == refused


def test_no_measure_that_is_right_or_wrong() -> None:
    given = [sample(0, 0.5)]
    assert refusal(results({"toy": given}, RIGHT), lines(*given)) == ("FILE", "no_measure")


class TestSamples:
    """The recorded run, and public results."""

    pytestmark = shared

    def test_the_recorded_run_is_borne_out(self) -> None:
        raw, told = MADE / "samples_toyadd.jsonl", MADE / "results_toyadd.json"
        made, findings = imported(raw.read_bytes(), told.read_bytes())
        figures = json.loads(told.read_text())["results"]["toyadd"]
        assert findings == ()
        assert isinstance(made.record.payload, QualityResult)
        for task in made.record.payload.tasks:
            right = np.array([json.loads(line)[task.metric] for line in raw.read_text().splitlines()])
            assert task.correct == right.sum()
            assert right.mean() == pytest.approx(figures[f"{task.metric},none"], rel=1e-12)
            error = right.std(ddof=1) / np.sqrt(len(right))
            assert error == pytest.approx(figures[f"{task.metric}_stderr,none"], rel=1e-12)
        assert [(task.metric, task.documents) for task in made.record.payload.tasks] == [("acc", 24), ("acc_norm", 24)]

    def test_a_changed_answer_is_seen(self) -> None:
        raw = (MADE / "samples_toyadd.jsonl").read_bytes().replace(b'"acc": 0.0', b'"acc": 1.0', 1)
        _, findings = imported(raw, (MADE / "results_toyadd.json").read_bytes())
        assert {finding.code for finding in findings} == {"claim_mismatch"}

    @pytest.mark.parametrize("name", ["1.4b-1MtokBS_step106000.json", "inferencex-supplemental-evals.json"])
    def test_public_results_without_samples_are_named(self, name: str) -> None:
        data = (SAMPLES / "public" / "lm-eval" / name).read_bytes()
        expected = {"1": ("$.task_hashes", "raw_data_missing"), "i": ("$", "wrong_file")}
        assert refusal(data) == expected[name[0]]
