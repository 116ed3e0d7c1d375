"""What a probe's raw values give: the level by the tool's own rules, under the words the tool would use."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from moeplan_infera.preflight.tool_file import HostReport, ToolFinding

__all__ = ["Judge", "Judgement", "failed_steps", "passed", "skipped"]


@attrs.frozen(kw_only=True)
class Judgement:
    """One judgement on one host's section.

    Attributes:
        says: the message under which the tool reports it.
        level: ``info`` (in order), ``warn``, ``fail``; ``skipped``: nothing was measured; ``own``: a rule of moeplan's,
            which the tool does not have.
        path: where the values stand.
        rule: id of the rule that is broken; None where it is in order.
        message: what is wrong, for people.
        severity: where it is not the one of the rule.
    """

    says: str
    level: str
    path: str
    rule: str | None = None
    message: str = ""
    severity: str | None = None


Judge = Callable[[HostReport, tuple[ToolFinding, ...]], Iterator[Judgement]]
"""Yields judgements on the findings of one section."""


def passed(finding: ToolFinding) -> Judgement:
    """Return that the values of a finding are in order."""
    return Judgement(says=finding.message, level="info", path=finding.path)


def skipped(finding: ToolFinding, *, wanted: bool = True) -> Judgement:
    """Return that nothing was measured; not ``wanted``: by the operator's choice, or for want of a second host."""
    message = f"nothing was measured: {finding.message}"
    return Judgement(
        says=finding.message,
        level="skipped",
        path=finding.path,
        rule="PRE-SKIPPED",
        message=message,
        severity=None if wanted else "info",
    )


def failed_steps(findings: tuple[ToolFinding, ...]) -> Iterator[Judgement]:
    """Yield a warning for each measurement that the tool began and that raised an error."""
    for finding in findings:
        error = finding.details.get("error", finding.details.get("err"))
        if finding.level == "warn" and finding.message.endswith("failed") and type(error) is str:
            message = f"{finding.message}: {error}"
            yield Judgement(
                says=finding.message, level="warn", path=finding.path, rule="PRE-MEASURE-FAILED", message=message
            )
