"""The host: asks plugins one at a time in the order of their names; a fault of one is named and the rest goes on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Generic, TypeVar

import attrs

from moeplan.errors import InputError, Issue, PluginError, escape
from moeplan.hooks.discovery import LOAD, PluginEntry, find_plugins
from moeplan.model.plan import Plan
from moeplan.model.plugin import GateCriterion, LogSignature, PluginFailure, PluginFinding, RuntimeInfo

__all__ = ["DEADLINE_MS", "Answer", "Answers", "Host", "InstalledPlugin", "open_host"]

DEADLINE_MS = 10_000
"""Time a plugin has for one answer, the start of its process included."""

T = TypeVar("T")
R = TypeVar("R")


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
            PluginError: it failed, or does not have the hook.
        """
        if self.failures:
            raise PluginError(*(_issue(failure) for failure in self.failures))
        if len(self.answers) != 1:
            raise PluginError(Issue("plugin", "no_answer", "no plugin answers", "one answer", str(len(self.answers))))
        return self.answers[0]


def _issue(failure: PluginFailure) -> Issue:
    step = "see 'moeplan plugins'; report it to the plugin's author"
    return Issue(f"plugin {failure.plugin}", failure.code, f"{failure.hook}: {failure.message}", next=step)


@attrs.frozen
class Host:
    """The plugins that can be used and the failures of those that cannot; made by :func:`open_host`.

    ``only`` of each method narrows a question to some of the plugins.
    """

    plugins: tuple[InstalledPlugin, ...]
    failures: tuple[PluginFailure, ...]
    deadline_ms: int | None

    def check(
        self, plan: Plan, site: Mapping[str, Any], only: Collection[str] | None = None
    ) -> Answers[tuple[PluginFinding, ...]]:
        """Return each plugin's findings on plan and site, under its name."""
        from moeplan.hooks.rules import own_findings

        return self._ask("moeplan_check", {"plan": plan, "site": site}, only, own_findings)

    def criteria(
        self, plan: Plan, site: Mapping[str, Any], only: Collection[str] | None = None
    ) -> Answers[tuple[GateCriterion, ...]]:
        """Return the criteria each plugin adds to the plan, contributed under its name and version."""
        from moeplan.hooks.rules import own_criteria, without_collisions

        answers = self._ask("moeplan_criteria", {"plan": plan, "site": site}, only, own_criteria(plan))
        taken = [(a.plugin, {(added.criterion.id, a.plugin) for added in a.value}) for a in answers.answers]
        return _without(answers, without_collisions(taken), "moeplan_criteria")

    def log_signatures(self, only: Collection[str] | None = None) -> Answers[tuple[LogSignature, ...]]:
        """Return the log signatures of each plugin; every pattern compiles."""
        from moeplan.hooks.rules import own_signatures

        return self._ask("moeplan_log_signatures", {}, only, own_signatures)

    def owners(self, manifest: Mapping[str, Any] | str, only: Collection[str] | None = None) -> Answers[bool | None]:
        """Return what each plugin says of a manifest or launch script: its own, not its own, or cannot tell."""
        return self._ask("moeplan_owns_manifest", {"manifest": manifest}, only, lambda _plugin, value: value)

    def _ask(
        self,
        hook: str,
        arguments: Mapping[str, Any],
        only: Collection[str] | None,
        own: Callable[[InstalledPlugin, Any], R],
    ) -> Answers[R]:
        from moeplan.hooks.calling import Fault
        from moeplan.hooks.plain_data import write_arguments

        written = write_arguments(arguments)
        answers, failures = [], []
        for plugin in self.plugins:
            if hook not in plugin.hooks or (only is not None and plugin.name not in only):
                continue
            try:
                value = own(plugin, _value(plugin.entry, hook, written, self.deadline_ms)[0])
            except Fault as fault:
                failures.append(_failure(plugin.entry, hook, fault))
            else:
                answers.append(Answer(plugin.name, plugin.version, value))
        return Answers(tuple(answers), tuple(failures))


def open_host(allow: Collection[str] | None = None, deadline_ms: int | None = DEADLINE_MS) -> Host:
    """Return a host of the installed plugins; each is loaded and asked what it is.

    Args:
        allow: names of the only plugins to load; None loads all.
        deadline_ms: time a plugin has for one answer, in a process of its own; None calls plugins in this process,
            which is quicker and contains everything but a plugin that hangs or ends the process.

    Raises:
        InputError: a name of ``allow`` is not installed.
    """
    from moeplan.hooks.calling import Fault
    from moeplan.hooks.rules import own_info, without_collisions

    entries, failed = find_plugins(allow)
    plugins, failures = [], list(failed)
    for entry in entries:
        try:
            info, hooks = _value(entry, "moeplan_runtime", {}, deadline_ms)
            plugins.append(InstalledPlugin(entry, hooks, own_info(entry, info)))
        except Fault as fault:
            failures.append(_failure(entry, LOAD, fault))
    collisions = without_collisions([(p.name, {(r.id, r.origin) for r in p.info.rules}) for p in plugins])
    for plugin in plugins:
        if plugin.name in collisions:
            failures.append(_failure(plugin.entry, LOAD, collisions[plugin.name]))
    kept = tuple(plugin for plugin in plugins if plugin.name not in collisions)
    return Host(kept, tuple(sorted(failures, key=lambda f: f.plugin)), deadline_ms)


def _value(
    entry: PluginEntry, hook: str, written: dict[str, Any], deadline_ms: int | None
) -> tuple[Any, tuple[str, ...]]:
    """Return a hook's result as the type of its specification, and the hooks the plugin has."""
    from moeplan.hooks.calling import Fault
    from moeplan.hooks.isolation import ask
    from moeplan.hooks.plain_data import result_type
    from moeplan.hooks.specs import HOOKS
    from moeplan.wire.converter import structure

    request = {"name": entry.name, "value": entry.value, "hook": hook, "arguments": written}
    got = ask(request, deadline_ms)
    try:
        value = structure(got["value"], result_type(hook))
    except InputError as error:
        raise Fault("malformed_result", f"the result is refused: {error.issues[0]}") from None
    return value, tuple(name for name in HOOKS if name in got["hooks"])


def _failure(entry: PluginEntry, hook: str, fault: Any) -> PluginFailure:
    return PluginFailure(entry.name, entry.version, hook, fault.code, escape(fault.message, 1000))


def _without(answers: Answers[T], refused: Mapping[str, Any], hook: str) -> Answers[T]:
    """Return the answers without those of refused plugins, which become failures."""
    kept = tuple(answer for answer in answers.answers if answer.plugin not in refused)
    lost = tuple(
        PluginFailure(a.plugin, a.version, hook, refused[a.plugin].code, refused[a.plugin].message)
        for a in answers.answers
        if a.plugin in refused
    )
    return Answers(kept, answers.failures + lost)
