"""Observations of the bytes an engine loaded and of quality, and trials not fit to judge, for the laws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moeplan.model.evidence import ClientLoad
from moeplan.model.verified import VerifiedRecord
from tests.build import HASHED_AT, digest_of
from tests.unit.evaluation.loaded_cases import CONTENTS, NOTHING, make_loaded, make_tensor_digestion, tensor_rows
from tests.unit.evaluation.service_cases import answers, make_quality

__all__ = ["BOUND", "PAYLOADS", "SERVICE", "SOUND_QUALITY"]

_W = CONTENTS["w"][0]
_OTHER = (_W, digest_of("other bytes"))


def _digestion(plan: Any, rows: Any = None, **record: Any) -> VerifiedRecord:
    kept = {name: value for name, value in record.items() if name in ("deployment", "signers")}
    return make_tensor_digestion(plan, rows, end=HASHED_AT, **kept)


SERVICE: dict[str, Callable[..., VerifiedRecord]] = {
    "tensors": _digestion,
    "tensors_other": lambda plan, **record: _digestion(plan, tensor_rows("files", w=_OTHER), **record),
    "tensors_part": lambda plan, **record: _digestion(plan, tensor_rows("files", w=None), **record),
    "loaded": make_loaded,
    "loaded_other": lambda plan, **record: make_loaded(plan, tensor_rows(w=_OTHER), **record),
    "loaded_part": lambda plan, **record: make_loaded(plan, tensor_rows(w=None), **record),
    "loaded_rest": lambda plan, **record: make_loaded(
        plan, [row for row in tensor_rows("tp1") if row[1] == "w"], **record
    ),
    "loaded_empty": lambda plan, **record: make_loaded(plan, tensor_rows(w=(_W, NOTHING)), **record),
    "loaded_more": lambda plan, **record: make_loaded(plan, [*tensor_rows(), ("tp0", "z", 2, _OTHER[1])], **record),
    "loaded_counting": lambda plan, **record: make_loaded(plan, counting=True, **record),
    "loaded_again": lambda plan, **record: make_loaded(plan, engine_start="2026-03-01T09:00:01Z", **record),
    "quality": lambda plan, **record: make_quality(plan, answers(700, 300), **record),
    "quality_low": lambda plan, **record: make_quality(plan, answers(600, 400), **record),
    "quality_near": lambda plan, **record: make_quality(plan, answers(670, 330), **record),
    "quality_part": lambda plan, **record: make_quality(plan, answers(70, 30), **record),
    "quality_other": lambda plan, **record: make_quality(plan, answers(9, 1, task="mmlu"), **record),
}
"""Each makes a record for a plan; keywords are those of ``make_observation``."""

BOUND = ("tensors", "loaded")
"""What binds trials ``loaded``."""
SOUND_QUALITY = ("quality",)
"""What a plan with a quality task needs."""
PAYLOADS: Mapping[str, dict[str, Any]] = {
    "plain": {},
    "port_forward": {"path": "port_forward"},
    "direct": {"path": "direct", "client": ClientLoad(50, 100, 1000)},
    "strained": {"client": ClientLoad(100, 100, 1000)},
    "streams": {"declared_concurrency": 16},
}
"""What a trial's payload may say of its client and its path."""
