"""The variables of a script as its commands come by: what is set, what is exported, what stands before one command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moeplan.manifests.shell_values import Partial, Value, join, whole

__all__ = ["DECLARING", "Scope"]

DECLARING = frozenset(("export", "declare", "local", "readonly", "typeset"))
"""Commands that set the variables after them."""


class Scope:
    """The variables at one place of a script."""

    def __init__(self, variables: Mapping[str, str | None], positional: Sequence[str] | None) -> None:
        self._known: dict[str, Value] = {**variables, "@": None if positional is None else tuple(positional)}
        self._exported: dict[str, str | None] = {}
        self._assigned: dict[str, Value] = {}

    def value(self, name: str) -> Value:
        """Return a variable's value; None where it is not set or not known."""
        return self._known.get(name)

    def assign(self, name: str, value: Value, *, adds: bool, by: str | None) -> Value:
        """Set a variable and return what it is then.

        Args:
            name: of the variable.
            value: what it is given.
            adds: whether that is put behind what it is (``+=``).
            by: the declaring command; None: it stands before a command, or alone.
        """
        if adds:
            value = self._sum(name, value)
        if by is None:
            self._assigned[name] = value
            return value
        self._known[name] = value
        if by in ("export", "declare") and not isinstance(value, tuple):
            self._exported[name] = whole(value)
        return value

    def _sum(self, name: str, value: Value) -> Value:
        old = self._assigned.get(name, self._known.get(name))
        if isinstance(old, tuple) and isinstance(value, tuple | str | Partial):
            return old + (value if isinstance(value, tuple) else (value,))
        if isinstance(old, str | Partial) and isinstance(value, str | Partial):
            return join((old, value))
        return None if name in self._known else value

    def end_command(self, words: Sequence[str]) -> Mapping[str, str | None] | None:
        """Take a command's end; return the environment that the script gives it, None where nothing is started."""
        assigned, self._assigned = self._assigned, {}
        if not words:
            self._known.update(assigned)
            again = {name: value for name, value in assigned.items() if name in self._exported}
            self._exported.update(_texts(again))
        elif words[0] == "export":
            for name in words[1:]:
                if name in self._known:
                    self._exported.update(_texts({name: self._known[name]}))
        elif words[0] not in DECLARING:
            return {**self._exported, **_texts(assigned)}
        return None


def _texts(values: Mapping[str, Value]) -> dict[str, str | None]:
    """Return the variables that are no arrays, which have no place in an environment."""
    return {name: whole(value) for name, value in values.items() if not isinstance(value, tuple)}
