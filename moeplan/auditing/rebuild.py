"""The plan in a bundle is a claim: rebuild it from its scenario with a registry the policy accepts, and compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from moeplan.auditing.contents import Contents
from moeplan.catalogue.builtin import BUILT_IN
from moeplan.catalogue.registries import load_registry
from moeplan.errors import Issue, VerificationError, escape
from moeplan.model.plan import Plan
from moeplan.model.policy import Policy
from moeplan.model.registry import Registry
from moeplan.planning.builder import plan as make_plan
from moeplan.planning.scenario import rebuild_scenario
from moeplan.wire.converter import unstructure
from moeplan.wire.documents import identify
from moeplan.wire.strict_json import child

__all__ = ["check_plan", "without_wording"]

_CORE = "moeplan"
_WORDING = frozenset(
    {
        "acceptanceCriteria",
        "assumptions",
        "generator",
        "known",
        "message",
        "method",
        "next",
        "objective",
        "reason",
        "requiredEvidence",
        "risks",
        "statement",
        "summary",
        "title",
        "unknown",
    }
)
"""Keys that hold a release's sentences. Reason codes of a verdict's criteria share the key ``reason`` and are kept."""


def check_plan(contents: Contents, policy: Policy, registries: Sequence[Registry]) -> str:
    """Refuse a plan that its scenario, an accepted registry and this release do not give; return one sentence.

    Criteria that a plugin contributed are taken out before the comparison: they may be added, never changed.

    Raises:
        VerificationError: ``registry_not_accepted``, ``registry_missing``, ``plan_differs``, ``checkpoint_differs``.
    """
    registry = _registry(contents, policy, registries)
    claimed = _core_of(contents.plan)
    rebuilt = make_plan(registry, rebuild_scenario(claimed))
    same_release = claimed.generator == rebuilt.generator
    before, after = unstructure(claimed), unstructure(rebuilt)
    if not same_release:
        before, after = without_wording(before), without_wording(after)
    if before != after:
        raise _differs(before, after)
    planned = contents.plan.artifact.checkpoint
    if planned is not None and contents.checkpoint is not None:
        held = (contents.checkpoint_digest, contents.checkpoint.root, contents.checkpoint.tensor_bytes)
        if held != (planned.manifest, planned.root, planned.tensor_bytes):
            raise VerificationError(
                Issue(
                    "plan.json: $.artifact.checkpoint",
                    "checkpoint_differs",
                    "checkpoint.json is not the plan's",
                    planned.manifest,
                    contents.checkpoint_digest,
                )
            )
    equal = "equal" if same_release else f"equal but for the wording of {claimed.generator}"
    return f"rebuilt from its scenario with registry {registry.registry_version}; {equal}"


def without_wording(value: Any) -> Any:
    """Return a document's plain values without the sentences that may change from release to release."""
    if isinstance(value, dict):
        return {key: without_wording(item) for key, item in value.items() if not _is_wording(key, value)}
    if isinstance(value, list):
        return [without_wording(item) for item in value]
    return value


def _is_wording(key: str, owner: dict[str, Any]) -> bool:
    return key in _WORDING and not (key == "reason" and "outcome" in owner)


def _registry(contents: Contents, policy: Policy, registries: Sequence[Registry]) -> Registry:
    wanted = contents.plan.registry.digest
    if policy.expects is not None and wanted not in policy.expects.registries:
        raise VerificationError(
            Issue(
                "plan.json: $.registry.digest",
                "registry_not_accepted",
                "the policy does not accept this registry",
                " or ".join(policy.expects.registries) or "none",
                wanted,
            )
        )
    held = [contents.registry] if contents.registry is not None else []
    found = next(
        (item for item in (*registries, *map(load_registry, BUILT_IN), *held) if identify(item) == wanted), None
    )
    if found is None:
        raise VerificationError(
            Issue(
                "plan.json: $.registry.digest",
                "registry_missing",
                "no registry with this digest is at hand",
                wanted,
                next="give it with --registry FILE",
            )
        )
    if contents.registry is not None and identify(contents.registry) != wanted:
        raise VerificationError(
            Issue(
                "registry.json",
                "registry_differs",
                "not the registry the plan names",
                wanted,
                identify(contents.registry),
            )
        )
    return found


def _core_of(plan: Plan) -> Plan:
    gates = tuple(
        attrs.evolve(
            gate, criteria=tuple(item for item in gate.criteria if item.contributed_by == _CORE) or gate.criteria
        )
        for gate in plan.validation_gates
    )
    return attrs.evolve(plan, validation_gates=gates)


def _differs(claimed: Any, rebuilt: Any) -> VerificationError:
    path, wanted, got = _first_difference(claimed, rebuilt, "$")
    return VerificationError(
        Issue(
            f"plan.json: {path}",
            "plan_differs",
            "the plan is not the one its scenario gives",
            escape(repr(wanted), 120),
            escape(repr(got), 120),
        )
    )


def _first_difference(claimed: Any, rebuilt: Any, path: str) -> tuple[str, Any, Any]:
    if isinstance(claimed, dict) and isinstance(rebuilt, dict):
        for key in rebuilt:
            if claimed.get(key) != rebuilt[key]:
                return _first_difference(claimed.get(key), rebuilt[key], child(path, key))
    if isinstance(claimed, list) and isinstance(rebuilt, list) and len(claimed) == len(rebuilt):
        for index, (left, right) in enumerate(zip(claimed, rebuilt, strict=True)):
            if left != right:
                return _first_difference(left, right, child(path, index))
    return path, rebuilt, claimed
