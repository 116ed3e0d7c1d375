"""One error tree. A failed gate is a result, never an exception."""

from __future__ import annotations

from typing import Any

import attrs

__all__ = [
    "InputError",
    "InputRefusedError",
    "Issue",
    "MoeplanError",
    "PluginError",
    "StoreError",
    "UnsupportedError",
    "VerificationError",
    "escape",
]


def escape(text: str, limit: int = 200) -> str:
    """Return ``text`` fit for a terminal: control and bidirectional characters escaped, long text cut.

    Args:
        text: any text, trusted or not.
        limit: the most characters kept.
    """
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[: limit + 1])
    return shown if len(shown) <= limit else shown[:limit] + "…"


@attrs.frozen
class Issue:
    """One fault: where it lies, what it is, and what to do about it.

    Attributes:
        path: JSON path (``$.gates[2].limit``), file path, or command-line option; ``$`` for a whole document.
        code: stable identifier other programs may match on; wording may change, codes may not.
        message: one sentence that says what is wrong.
        expected: what would have been accepted.
        got: what was found, already escaped.
        next: the next step for the person who reads this.
    """

    path: str
    code: str
    message: str
    expected: str | None = None
    got: str | None = None
    next: str | None = None

    def under(self, prefix: str) -> Issue:
        """Return this issue with ``prefix`` put before its path (``$`` is replaced by it)."""
        return attrs.evolve(self, path=prefix + self.path.removeprefix("$"))

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}"
        if self.expected is not None:
            text += f"; expected {self.expected}"
        if self.got is not None:
            text += f", got {self.got}"
        if self.next is not None:
            text += f"; {self.next}"
        return text

    def to_json(self) -> dict[str, Any]:
        """Return the issue as the JSON object that ``--json`` prints."""
        return attrs.asdict(self)


class MoeplanError(Exception):
    """Base of every error moeplan raises on purpose.

    Attributes:
        issues: at least one :class:`Issue`, in document order.
        source: the file or input the issues belong to, where known.
    """

    def __init__(self, *issues: Issue, source: str | None = None) -> None:
        if not issues:
            raise TypeError("an error needs at least one issue")
        self.issues = issues
        self.source = source
        super().__init__("\n".join(str(issue) for issue in issues))

    @classmethod
    def at(cls, path: str, code: str, message: str, **rest: str | None) -> MoeplanError:
        """Return an error with one issue; keywords as in :class:`Issue`."""
        return cls(Issue(path, code, message, **rest))

    def lines(self) -> tuple[str, ...]:
        """Return each issue as a person reads it, the source before it where its path does not begin with it."""
        prefix = f"{self.source}: " if self.source else ""
        return tuple(str(i) if str(i).startswith(prefix) else prefix + str(i) for i in self.issues)

    def to_json(self) -> dict[str, Any]:
        """Return the object ``--json`` prints: the first issue, and all of them under ``issues``."""
        error = self.issues[0].to_json()
        if self.source is not None:
            error["source"] = self.source
        if len(self.issues) > 1:
            error["issues"] = [issue.to_json() for issue in self.issues]
        return {"error": error}


class InputError(MoeplanError):
    """A command line, a document or a tool's file is malformed (exit code 2)."""


class InputRefusedError(InputError):
    """What a plugin's hook raises to say that plan, site or manifest is wrong, and where.

    A plain ``InputError`` out of a hook is the plugin's own fault: it made a value that its type does not allow.
    """


class UnsupportedError(InputError):
    """A document's kind or version is none that this release reads."""


class VerificationError(MoeplanError):
    """An evidence bundle or one of its signatures is at fault (exit code 4)."""


class PluginError(MoeplanError):
    """A plugin is at fault and nothing else can answer in its place (exit code 2).

    Where others can, no error is raised: the fault is a named ``PluginFailure`` beside the answers and the command
    goes on.
    """


class StoreError(MoeplanError):
    """Reading or writing failed: missing, changed while read, read-only, disk full (exit code 2)."""
