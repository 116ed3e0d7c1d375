"""What the host gives: the plugins that are there, and what each of them answered or why it did not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import attrs

from moeplan.errors import InputError, Issue, PluginError
from moeplan.hooks.discovery import PluginEntry

if TYPE_CHECKING:
    from moeplan.model.plugin import InputFault, PluginFailure, RuntimeInfo

__all__ = ["Answer", "Answers", "InstalledPlugin"]

T = TypeVar("T")


@attrs.frozen
class InstalledPlugin:
    """A plugin that was loaded and said what it is."""

    entry: PluginEntry
    hooks: tuple[str, ...]
    info: RuntimeInfo

    @property
    def name(self) -> str:
        """The entry point's name."""
        return self.entry.name

    @property
    def version(self) -> str:
        """The distribution's version."""
        return self.entry.version


@attrs.frozen
class Answer(Generic[T]):
    """What one plugin of one version answered."""

    plugin: str
    version: str
    value: T


@attrs.frozen
class Answers(Generic[T]):
    """What the plugins that have the hook answered, in the order of their names, and those that failed."""

    answers: tuple[Answer[T], ...]
    failures: tuple[PluginFailure, ...]

    def only(self) -> Answer[T]:
        """Return the one answer, where exactly one plugin was asked.

        Raises:
            InputError: it refused its input and said why.
            PluginError: it failed, or does not have the hook.
        """
        if self.failures and all(failure.issues for failure in self.failures):
            raise InputError(*(_told(fault) for failure in self.failures for fault in failure.issues))
        if self.failures:
            raise PluginError(*(_issue(failure) for failure in self.failures))
        if len(self.answers) != 1:
            raise PluginError(Issue("plugin", "no_answer", "no plugin answers", "one answer", str(len(self.answers))))
        return self.answers[0]


def _told(fault: InputFault) -> Issue:
    return Issue(fault.path, fault.code, fault.message, fault.expected, fault.got, fault.next)


def _issue(failure: PluginFailure) -> Issue:
    step = "see 'moeplan plugins'; report it to the plugin's author"
    return Issue(f"plugin {failure.plugin}", failure.code, f"{failure.hook}: {failure.message}", next=step)
