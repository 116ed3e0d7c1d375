"""What a plan still lacks: per criterion the records there are, those that are missing, and what gets them.

Records are read as claims: nothing is verified and nothing is judged. ``moeplan verdict`` judges.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs

from moeplan.errors import InputError, Issue, StoreError, escape
from moeplan.model.checkpoint import CheckpointManifest
from moeplan.model.evidence import EvidenceRecord
from moeplan.model.plan import Plan
from moeplan.model.run_manifest import RunManifest
from moeplan.wire.documents import identify, load_value
from moeplan.wire.files import read_file
from moeplan.wire.strict_json import parse_strict
from moeplan.workflows.status_steps import step_for

__all__ = ["CriterionStatus", "FoundRecord", "Status", "Step", "find_records", "status"]

_MOST_FILES = 20_000
_KINDS: dict[str, type[EvidenceRecord | RunManifest | CheckpointManifest]] = {
    "evidence_record": EvidenceRecord,
    "run_manifest": RunManifest,
    "checkpoint_manifest": CheckpointManifest,
}

Found = EvidenceRecord | RunManifest | CheckpointManifest


@attrs.frozen
class FoundRecord:
    """A document of evidence and where it lies."""

    path: str
    document: Found


@attrs.frozen
class Step:
    """What gets one type of evidence: the command, with what is known filled in, and about how many minutes."""

    type: str
    command: str
    minutes: int


@attrs.frozen
class CriterionStatus:
    """One criterion: ``evidence`` where every type it asks for has a record, ``missing`` where one has none.

    Attributes:
        records: paths of the records it would be judged from.
        lacks: types it asks for of which there is no record.
    """

    gate: str
    criterion: str
    state: str
    records: tuple[str, ...]
    lacks: tuple[str, ...]


@attrs.frozen
class Status:
    """How far a plan's evidence has come.

    Attributes:
        criteria: in the plan's order.
        steps: what gets each type that is lacking, once.
        other_plan: paths of records made for another plan; they count for nothing.
        interrupted: paths of run manifests that are open, or list a part that left no record.
        deployments: how many different deployments the records name; more than one never meets in a verdict.
        minutes: sum over the steps.
    """

    criteria: tuple[CriterionStatus, ...]
    steps: tuple[Step, ...]
    other_plan: tuple[str, ...]
    interrupted: tuple[str, ...]
    deployments: int
    minutes: int


def find_records(directories: Sequence[Path]) -> tuple[FoundRecord, ...]:
    """Return every evidence record, run manifest and checkpoint manifest below the directories, by path.

    Other JSON files are passed over; links are not followed.

    Raises:
        StoreError: a directory cannot be read.
        InputError: a document of one of these kinds is malformed, or there are more than 20,000 files.
    """
    found, issues = [], list[Issue]()
    for path in _json_files(directories):
        try:
            document = _load(path)
        except InputError as error:
            issues += [attrs.evolve(issue, path=f"{escape(path, 400)}: {issue.path}") for issue in error.issues]
            continue
        if document is not None:
            found.append(FoundRecord(path, document))
    if issues:
        raise InputError(*issues)
    return tuple(found)


def _json_files(directories: Sequence[Path]) -> list[str]:
    found: list[str] = []
    for directory in directories:
        if not directory.is_dir():
            shown = escape(str(directory), 400)
            raise StoreError(Issue(shown, "not_a_directory", "no directory to look into", "a directory of evidence"))
        for root, names, files in os.walk(directory):
            names.sort()
            found += [os.path.join(root, name) for name in sorted(files) if name.endswith(".json")]
            if len(found) > _MOST_FILES:
                shown = escape(str(directory), 400)
                raise InputError(Issue(shown, "too_many_files", "too many JSON files", f"at most {_MOST_FILES}"))
    return list(dict.fromkeys(found))


def _load(path: str) -> Found | None:
    """Return the document in a file, None where the file is none of these."""
    data = read_file(path, max_bytes=512 << 20)
    if not any(kind.encode() in data for kind in _KINDS):
        return None
    try:
        value = parse_strict(data, max_bytes=512 << 20)
    except InputError:
        return None
    cls = _KINDS.get(str(value.get("kind"))) if type(value) is dict else None
    return None if cls is None else load_value(value, cls)


def status(plan: Plan, found: Iterable[FoundRecord]) -> Status:
    """Return what the plan's criteria have and lack. Pure: no file, no clock.

    Args:
        plan: the plan, form 1.1.0.
        found: from :func:`find_records`.
    """
    wanted = identify(plan)
    mine, other = list[FoundRecord](), list[str]()
    for item in found:
        foreign = not isinstance(item.document, CheckpointManifest) and item.document.plan != wanted
        (other.append(item.path) if foreign else mine.append(item))
    by_type = _by_type(plan, mine)
    criteria = tuple(
        _criterion(gate.id, criterion.id, criterion.evidence_types, by_type)
        for gate in plan.validation_gates
        for criterion in gate.criteria
    )
    lacking = dict.fromkeys(kind for item in criteria for kind in item.lacks)
    steps = tuple(Step(kind, *step_for(plan, kind)) for kind in lacking)
    return Status(
        criteria=criteria,
        steps=steps,
        other_plan=tuple(other),
        interrupted=tuple(item.path for item in mine if _interrupted(item.document)),
        deployments=len(_deployments(mine)),
        minutes=sum(step.minutes for step in steps),
    )


def _deployments(found: Iterable[FoundRecord]) -> set[str]:
    records = (item.document for item in found)
    return {identify(record.deployment) for record in records if isinstance(record, EvidenceRecord)}


def _by_type(plan: Plan, found: Iterable[FoundRecord]) -> dict[str, list[str]]:
    made: dict[str, list[str]] = {}
    planned = plan.artifact.checkpoint
    for item in found:
        document = item.document
        if isinstance(document, EvidenceRecord):
            made.setdefault(document.type, []).append(item.path)
        elif isinstance(document, CheckpointManifest) and (planned is None or planned.manifest == identify(document)):
            made.setdefault("checkpoint_manifest", []).append(item.path)
    return made


def _criterion(gate: str, id: str, types: Sequence[str], by_type: dict[str, list[str]]) -> CriterionStatus:
    lacks = tuple(kind for kind in dict.fromkeys(types) if kind not in by_type)
    records = tuple(path for kind in dict.fromkeys(types) for path in by_type.get(kind, ()))
    return CriterionStatus(gate, id, "missing" if lacks else "evidence", records, lacks)


def _interrupted(document: Found) -> bool:
    if not isinstance(document, RunManifest):
        return False
    parts = [*(trial.record for trial in document.trials), *(part.record for part in document.observations)]
    return document.state != "closed" or None in parts or len(document.trials) < document.planned_trials
