"""Raw tables that contradict their record are refused with a named error (step 11 of verification)."""

from __future__ import annotations

from array import array

import attrs
import pytest

from moeplan.auditing.raw_tables import _faults
from moeplan.model.evidence import EvidenceRecord
from moeplan.model.observations import ExpertCounts, LoadedBytes
from moeplan.model.series import TensorDigestTable
from tests.build import build_plan, digest_of, make_digestion
from tests.build_observations import make_observation
from tests.unit.evaluation.routing_cases import make_counts

PLAN = build_plan()


def tensors(rank: str) -> TensorDigestTable:
    return TensorDigestTable((rank,), ("w",), array("q", [2]), (digest_of("w"),))


def codes(record: EvidenceRecord, **tables: object) -> list[str]:
    return [issue.code for issue in _faults(record, tables)]


@pytest.mark.parametrize(("intervals", "expected"), [(2, []), (3, []), (1, ["unknown_interval"])])
def test_counts_of_an_interval_that_the_record_has_not(intervals: int, expected: list[str]) -> None:
    item = make_counts(PLAN)
    payload = item.record.payload
    assert isinstance(payload, ExpertCounts)
    record = attrs.evolve(item.record, payload=attrs.evolve(payload, interval_count=intervals))
    assert codes(record, experts=item.experts) == expected


@pytest.mark.parametrize(("rank", "expected"), [("tp0", []), ("tp1", ["unknown_rank"])])
def test_bytes_loaded_by_a_rank_that_the_record_does_not_name(rank: str, expected: list[str]) -> None:
    payload = LoadedBytes(loader="safetensors", ranks=("tp0",), row_count=1, counting=False)
    item = make_observation(PLAN, payload, tensors=tensors(rank))
    assert codes(item.record, tensors=item.tensors) == expected


@pytest.mark.parametrize(("rank", "expected"), [("files", []), ("tp0", ["unknown_rank"])])
def test_digests_of_files_are_of_files(rank: str, expected: list[str]) -> None:
    assert codes(make_digestion(PLAN).record, tensors=tensors(rank)) == expected
