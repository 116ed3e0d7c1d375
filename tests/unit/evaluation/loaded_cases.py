"""Cases of the binding ``loaded``: the files' tensors and those an engine loaded, one thing spoilt."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from moeplan.model.evidence import Attachment
from moeplan.model.observations import LoadedBytes
from moeplan.model.plan import Plan
from moeplan.model.series import TensorDigestTable
from moeplan.model.verified import VerifiedRecord
from moeplan.wire.documents import identify
from tests.build import (
    TRIAL_START,
    Case,
    build_plan,
    case_of,
    digest_of,
    make_checkpoint,
    make_digestion,
    make_evidence,
)
from tests.build_observations import make_observation

__all__ = ["CONTENTS", "LOADED_REASONS", "loaded_case", "make_loaded", "make_tensor_digestion", "tensor_rows"]

CONTENTS = {tensor.name: (tensor.bytes, digest_of(tensor.name)) for tensor in make_checkpoint().tensors}
"""Size and digest of each tensor of the synthetic checkpoint."""
NOTHING = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

Row = tuple[str, str, int, str]


def tensor_rows(rank: str = "tp0", **changes: tuple[int, str] | None) -> list[Row]:
    """Return a row a tensor of the checkpoint; ``changes`` give another size and digest, or None for no row."""
    told = {name: changes.get(name.rpartition(".")[0] or name, content) for name, content in CONTENTS.items()}
    return [(rank, name, *content) for name, content in told.items() if content is not None]


def _table(rows: Sequence[Row]) -> TensorDigestTable:
    ordered = sorted(rows)
    return TensorDigestTable(
        tuple(row[0] for row in ordered),
        tuple(row[1] for row in ordered),
        array("q", [row[2] for row in ordered]),
        tuple(row[3] for row in ordered),
    )


def make_tensor_digestion(plan: Plan, rows: Sequence[Row] | None = None, **record: Any) -> VerifiedRecord:
    """Return a verified hashing of the node's files with the digest of each tensor."""
    plain = make_digestion(plan, **record)
    table = _table(tensor_rows("files") if rows is None else rows)
    digest = digest_of(f"{table.tensor} {list(table.bytes)} {table.digest}")
    part = Attachment("tensors", "attachments/tensors.parquet", "t", "application/vnd.apache.parquet", 1, digest)
    made = attrs.evolve(plain.record, attachments=(part,))
    assert not list(made.faults())
    return VerifiedRecord(made, identify(made), plain.signers, tensors=table)


def make_loaded(
    plan: Plan, rows: Sequence[Row] | None = None, *, counting: bool = False, **record: Any
) -> VerifiedRecord:
    """Return a verified record of what one engine start loaded: the checkpoint, unless other ``rows`` are given."""
    table = _table(tensor_rows() if rows is None else rows)
    ranks = tuple(sorted(set(table.rank)))
    payload = LoadedBytes(loader="safetensors", ranks=ranks, row_count=len(table), counting=counting)
    return make_observation(plan, payload, **({"start": TRIAL_START} | record), tensors=table)


def loaded_case(
    loaded: Sequence[VerifiedRecord] | None = None, digestions: Sequence[VerifiedRecord] | None = None
) -> Case:
    """Return the ready case with the files' tensors and what the engine loaded."""
    plan = build_plan()
    case = case_of(plan, digestions=[make_tensor_digestion(plan)] if digestions is None else digestions)
    records = [*case.evidence.records, *([make_loaded(plan)] if loaded is None else loaded)]
    return case.but(evidence=make_evidence(records, case.evidence.runs, case.evidence.checkpoint))


def _other_bytes() -> Case:
    return loaded_case([make_loaded(build_plan(), tensor_rows(w=(CONTENTS["w"][0], digest_of("other"))))])


LOADED_REASONS: Mapping[str, tuple[Callable[[], Case], str, str]] = {
    "loaded_bytes_differ": (_other_bytes, "artifact.files_digested", "fail"),
}
"""A case for each reason of the binding, the criterion that has it, and its outcome."""
