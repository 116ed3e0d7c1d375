"""Numbered steps: each runs once, in order, and the first fault ends them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import attrs

from moeplan.errors import InputError, Issue, MoeplanError, VerificationError

__all__ = ["STEP_NAMES", "Step", "Steps"]

STEP_NAMES = (
    "policy",
    "container",
    "attestation_form",
    "signatures",
    "index",
    "inventory",
    "documents",
    "plan",
    "records",
    "record_signatures",
    "tables",
    "runs",
    "own_verdict",
    "signed_verdict",
)
"""The steps of verification (1 to 12) and audit (13, 14), in their order. docs/audit.md explains each."""

T = TypeVar("T")


@attrs.frozen
class Step:
    """One step that was run."""

    number: int
    name: str
    outcome: str
    detail: str

    def to_json(self) -> dict[str, Any]:
        """Return the step as ``--json`` prints it."""
        return attrs.asdict(self)


@attrs.define
class Steps:
    """The steps run so far, and the fault that ended them."""

    done: list[Step] = attrs.field(factory=list)
    error: MoeplanError | None = None

    @property
    def ok(self) -> bool:
        """Whether no step found a fault."""
        return self.error is None

    def run(self, name: str, action: Callable[[], tuple[T, str]], *, own_input: bool = False) -> T:
        """Run one step; ``action`` returns its result and one sentence about it.

        Args:
            name: the step's name.
            own_input: the step looks at the auditor's own files, whose faults are no faults of the bundle.

        Raises:
            VerificationError: the step found a fault of the bundle.
            MoeplanError: the auditor's own input is at fault.
        """
        number = STEP_NAMES.index(name) + 1
        try:
            result, detail = action()
        except MoeplanError as error:
            fault = error if own_input or not isinstance(error, InputError) else _as_fault(error)
            self.error = fault
            self.done.append(Step(number, name, "failed", str(fault.issues[0])))
            if fault is error:
                raise
            raise fault from None
        self.done.append(Step(number, name, "ok", detail))
        return result


def _as_fault(error: InputError) -> VerificationError:
    """Return a document's fault as the bundle's: inside a bundle a malformed document is a fault of the bundle."""
    prefix = f"{error.source}: " if error.source else ""
    issues = [Issue(prefix + i.path, i.code, i.message, i.expected, i.got, i.next) for i in error.issues]
    return VerificationError(*issues)
