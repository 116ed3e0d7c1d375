"""Criteria of artifact_integrity and static_residency."""

from __future__ import annotations

from moeplan.planning.criteria.rule import Criteria, criterion

__all__ = ["artifact_criteria", "residency_criteria"]

_MANIFEST = ("checkpoint_manifest",)


def artifact_criteria(identity: str, root: str | None) -> Criteria:
    """Return the criteria of ``artifact_integrity``.

    Args:
        identity: ``<repository>@<revision>``.
        root: root digest of the exact checkpoint, or None where none was digested.
    """
    both = ("checkpoint_digest", "serving_trial")
    return (
        criterion(
            "resolve_artifact",
            "artifact.revision_identity",
            "checkpoint_revision",
            "exact",
            "eq",
            identity,
            "identity",
            _MANIFEST,
        ),
        criterion(
            "digests_before_execution",
            "artifact.files_digested",
            "checkpoint_root",
            "exact",
            "eq",
            root,
            "digest",
            _MANIFEST,
        ),
        criterion(
            "digests_before_execution",
            "artifact.digest_before_execution",
            "digest_lead_seconds",
            "all_records",
            "ge",
            0,
            "s",
            both,
            "hashed",
        ),
    )


def residency_criteria(requested: int, usable_bytes: int | None) -> Criteria:
    """Return the criteria of ``static_residency``.

    Args:
        requested: accelerators asked for.
        usable_bytes: bytes of all of them after the reserve, or None where unknown.
    """
    return (
        criterion(
            "residency_floor",
            "residency.planned_floor",
            "minimum_accelerators",
            "exact",
            "le",
            requested,
            "accelerators",
            (),
        ),
        criterion(
            "residency_floor",
            "residency.exact_tensor_bytes",
            "checkpoint_tensor_bytes",
            "exact",
            "le",
            usable_bytes,
            "bytes",
            _MANIFEST,
        ),
    )
