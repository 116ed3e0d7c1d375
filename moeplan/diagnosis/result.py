"""What logs say: findings, what was expected of them, and what was read."""

from __future__ import annotations

import attrs

from moeplan.model.plugin import FactSource, PluginFailure, ValidFor

__all__ = ["Diagnosis", "ExpectedLine", "LogEvidence", "LogFinding", "ReadLog"]


@attrs.frozen
class LogEvidence:
    """The observation a finding is: so many lines of the log with this digest bear the signature.

    ``comparator`` and ``limit`` are the rule where the signature has one: ``eq`` 0 or ``ge`` 1.
    """

    observation: str
    value: int
    log: str
    comparator: str | None
    limit: int | None


@attrs.frozen(kw_only=True)
class LogFinding:
    """Lines of one log that bear the signatures of one id.

    Attributes:
        id: of the signatures.
        plugin: the first plugin by name that knows it.
        plugins: every plugin that does.
        severity: the gravest of the signatures that were found.
        expectation: ``must_be_zero`` where one of those found must not be there, else ``informs``.
        file: the log.
        count: lines that bear at least one of the signatures.
        first_line: number of the first one, from 1.
        excerpt: what it says, escaped and cut.
        cause: likely cause, of the signature that was found first.
        remedy: what to do about it.
        sources: where that is known from.
        valid_for: engine versions or images it holds for, where it is bound to some.
        evidence: the observation this is.
        complete: False where looking for one of the signatures was given up; ``count`` is then a lower bound.
    """

    id: str
    plugin: str
    plugins: tuple[str, ...]
    severity: str
    expectation: str
    file: str
    count: int
    first_line: int
    excerpt: str
    cause: str
    remedy: str
    sources: tuple[FactSource, ...]
    valid_for: ValidFor | None
    evidence: LogEvidence
    complete: bool


@attrs.frozen(kw_only=True)
class ExpectedLine:
    """A line that must be in the logs, or must not: how often it is there, and whether that is as it must be.

    Attributes:
        id: of the signatures.
        plugin: the first plugin by name that knows it.
        expectation: ``must_be_zero`` or ``must_be_present``.
        severity: the gravest of the signatures.
        count: lines in all logs together.
        holds: whether it is as it must be; None where looking for it was given up.
        file: the first log with such a line, or None.
        first_line: the line's number there, or None.
        excerpt: what it says, or None.
        cause: why it matters.
        remedy: what to do about it.
        sources: where that is known from.
    """

    id: str
    plugin: str
    expectation: str
    severity: str
    count: int
    holds: bool | None
    file: str | None
    first_line: int | None
    excerpt: str | None
    cause: str
    remedy: str
    sources: tuple[FactSource, ...]


@attrs.frozen
class ReadLog:
    """A log that was read: its bytes as they lie and their SHA-256; lines, and those too long to be read whole."""

    file: str
    size: int
    digest: str
    lines: int
    cut_lines: int


@attrs.frozen
class Diagnosis:
    """What was found in the logs; ``signatures`` is how many were looked for, ``failures`` those given up."""

    findings: tuple[LogFinding, ...]
    expected: tuple[ExpectedLine, ...]
    logs: tuple[ReadLog, ...]
    signatures: int
    failures: tuple[PluginFailure, ...]

    @property
    def outcome(self) -> str:
        """``errors``: an error finding, or a line that must not be there; ``nothing_judged``; else ``clear``.

        A line that must be there and is not makes no error: a part of a log proves nothing by what it lacks.
        """
        forbidden = any(row.expectation == "must_be_zero" and row.holds is False for row in self.expected)
        if forbidden or any(finding.severity == "error" for finding in self.findings):
            return "errors"
        return "clear" if self.signatures and any(log.lines for log in self.logs) else "nothing_judged"
