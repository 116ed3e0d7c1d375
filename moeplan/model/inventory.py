"""bundle.json: the closed-world inventory of an evidence bundle."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from moeplan.errors import Issue
from moeplan.model.fields import choice, const, digest, integer, sequence, text

__all__ = ["ROLES", "EvidenceBundle", "InventoryFile"]

ROLES = ("plan", "registry", "checkpoint", "evidence", "run_manifest", "attachment")
BUNDLE_PATH = (
    r"^(plan\.json|registry\.json|checkpoint\.json|evidence/[A-Za-z0-9][A-Za-z0-9._-]*\.json"
    r"|attachments/[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*)$"
)


@attrs.frozen
class InventoryFile:
    """One file of the bundle."""

    path: str = text(pattern=BUNDLE_PATH, max_length=512)
    size: int = integer()
    digest: str = digest()
    media_type: str = text(pattern=r"^[a-z0-9.+-]+/[a-z0-9.+-]+$", max_length=100)
    role: str = choice(*ROLES)


@attrs.frozen
class EvidenceBundle:
    """Closed-world inventory: every file but ``bundle.json`` itself and those under ``attestations/``."""

    kind: str = const("evidence_bundle")
    schema_version: str = const("1.0.0")
    files: tuple[InventoryFile, ...] = sequence(InventoryFile, min_items=1)

    def faults(self) -> Iterator[Issue]:
        """Yield what no single field shows: order, repeats, a role that does not fit its path, no plan."""
        paths = [file.path for file in self.files]
        if paths != sorted(set(paths)):
            yield Issue("$.files", "not_sorted", "files out of order or repeated", "unique paths in code point order")
        folded = [path.casefold() for path in paths]
        if len(set(folded)) != len(set(paths)):
            yield Issue("$.files", "paths_collide", "paths that differ only in case", "paths that differ in more")
        for index, file in enumerate(self.files):
            if not _fits(file.path, file.role):
                yield Issue(f"$.files[{index}].role", "role_mismatch", "role does not fit the path", None, file.role)
        if "plan.json" not in paths:
            yield Issue("$.files", "plan_missing", "the bundle lists no plan", "plan.json")


def _fits(path: str, role: str) -> bool:
    if path.startswith("evidence/"):
        return role in ("evidence", "run_manifest")
    if path.startswith("attachments/"):
        return role == "attachment"
    return path == f"{role}.json"
