"""The host: asks plugins one at a time in the order of their names; a fault of one is named and the rest goes on.

Each plugin has a process of its own, in which it is loaded once. All of them are started side by side when the host is
opened, and end with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from moeplan.errors import InputError, escape
from moeplan.hooks.answers import Answer, Answers, InstalledPlugin
from moeplan.hooks.discovery import LOAD, PluginEntry, find_plugins

if TYPE_CHECKING:
    from moeplan.hooks.asking import Sessions
    from moeplan.model.placement import Placement
    from moeplan.model.plan import Plan
    from moeplan.model.plugin import GateCriterion, LogSignature, PluginFailure, PluginFinding
    from moeplan.model.preflight import Imported, ImporterInfo, ImportRequest, PreflightCheck
    from moeplan.model.rendering import LintRequest, Rendering

__all__ = [
    "DEADLINE_MS",
    "PRELOAD",
    "Answer",
    "Answers",
    "Host",
    "InstalledPlugin",
    "StartedPlugins",
    "open_host",
    "start_plugins",
]

DEADLINE_MS = 10_000
"""Time a plugin has for one answer, what is left of the start of its process included."""
PRELOAD = ("cattrs.gen", "importlib.metadata", "importlib.resources", "moeplan.facts.judge", "moeplan.facts.launches")
"""What most plugins import, by name: these rooms stand above this one, and a host that cannot have one does without."""

T = TypeVar("T")
R = TypeVar("R")
Manifest = Mapping[str, Any] | str
"""One YAML document as JSON values, or the text of a launch script."""


def _new_sessions() -> Sessions:
    from moeplan.hooks.asking import Sessions

    return Sessions()


@attrs.frozen
class Host:
    """The plugins that can be used and the failures of those that cannot; made by :func:`open_host`.

    A host is a context manager: at its end the plugins' processes end. They also do when the host is collected as
    garbage and at the interpreter's exit. Questions of several threads are asked one after the other.

    ``only`` of each method narrows a question to some of the plugins.
    """

    plugins: tuple[InstalledPlugin, ...]
    failures: tuple[PluginFailure, ...]
    deadline_ms: int | None
    sessions: Sessions = attrs.field(factory=_new_sessions, eq=False, repr=False)

    def __enter__(self) -> Host:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the plugins' processes; the host can be asked nothing more of them."""
        self.sessions.close()

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

    def owners(
        self, manifests: Sequence[Manifest], only: Collection[str] | None = None
    ) -> Answers[tuple[bool | None, ...]]:
        """Return what each plugin says of each manifest or launch script: its own, not its own, or cannot tell.

        A plugin that fails at one of them has failed.
        """
        calls = _written([{"manifest": manifest} for manifest in manifests])
        return self._ask_each("moeplan_owns_manifest", lambda _plugin: calls, only, lambda _plugin, values: values)

    def lint(self, requests: Mapping[str, LintRequest], site: Mapping[str, Any]) -> Answers[tuple[PluginFinding, ...]]:
        """Return each plugin's findings in the sources that it is to judge, under its name.

        Args:
            requests: by the name of the plugin; one that is not named is not asked.
            site: what is known of the site, as JSON values; empty where nothing is.
        """
        from moeplan.hooks.rules import own_lint

        return self._ask_each(
            "moeplan_lint",
            lambda plugin: _written([{"request": requests[plugin.name], "site": site}]),
            requests,
            lambda plugin, values: own_lint(requests[plugin.name], plugin, values[0]),
        )

    def placement(self, plan: Plan, site: Mapping[str, Any], only: Collection[str] | None = None) -> Answers[Placement]:
        """Return where each plugin says that tensors and KV cache go."""
        from moeplan.hooks.rules import own_placement

        return self._ask("moeplan_placement", {"plan": plan, "site": site}, only, own_placement)

    def render(self, plan: Plan, site: Mapping[str, Any], only: Collection[str] | None = None) -> Answers[Rendering]:
        """Return what each plugin renders; each file name is there once."""
        from moeplan.hooks.rules import own_rendering

        return self._ask("moeplan_render", {"plan": plan, "site": site}, only, own_rendering)

    def preflight(self, only: Collection[str] | None = None) -> Answers[tuple[PreflightCheck, ...]]:
        """Return what each plugin has an operator do before a deployment."""
        from moeplan.hooks.rules import own_preflight

        return self._ask("moeplan_preflight", {}, only, own_preflight)

    def importers(self, only: Collection[str] | None = None) -> Answers[tuple[ImporterInfo, ...]]:
        """Return the formats that each plugin reads; a format of two origins is nobody's."""
        from moeplan.hooks.rules import own_importers, without_collisions

        answers = self._ask("moeplan_importers", {}, only, own_importers)
        claimed = [(a.plugin, {(importer.format, importer.origin) for importer in a.value}) for a in answers.answers]
        return _without(answers, without_collisions(claimed), "moeplan_importers")

    def import_files(self, plugin: str, request: ImportRequest, site: Mapping[str, Any]) -> Answers[Imported]:
        """Return what the plugin of this name reads in the files."""
        from moeplan.hooks.rules import own_import

        arguments = {"request": request, "site": site}
        return self._ask("moeplan_import", arguments, (plugin,), partial(own_import, request))

    def _ask(
        self,
        hook: str,
        arguments: Mapping[str, Any],
        only: Collection[str] | None,
        own: Callable[[InstalledPlugin, Any], R],
    ) -> Answers[R]:
        calls = _written([arguments])
        return self._ask_each(hook, lambda _plugin: calls, only, lambda plugin, values: own(plugin, values[0]))

    def _ask_each(
        self,
        hook: str,
        calls: Callable[[InstalledPlugin], list[dict[str, Any]]],
        only: Collection[str] | None,
        own: Callable[[InstalledPlugin, tuple[Any, ...]], R],
    ) -> Answers[R]:
        from moeplan.hooks.faults import Fault

        answers, failures = [], []
        for plugin in self.plugins:
            if hook not in plugin.hooks or (only is not None and plugin.name not in only):
                continue
            try:
                value = own(plugin, _values(self.sessions, plugin.entry, hook, calls(plugin), self.deadline_ms)[0])
            except Fault as fault:
                failures.append(_failure(plugin.entry, hook, fault))
            else:
                answers.append(Answer(plugin.name, plugin.version, value))
        return Answers(tuple(answers), tuple(failures))


def _written(calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    from moeplan.hooks.plain_data import write_arguments

    return [write_arguments(arguments) for arguments in calls]


@attrs.frozen
class StartedPlugins:
    """Plugins whose processes were started and load them; nobody has waited for them yet."""

    entries: tuple[PluginEntry, ...]
    failures: tuple[PluginFailure, ...]
    deadline_ms: int | None
    sessions: Sessions

    def host(self) -> Host:
        """Ask each plugin what it is and return the host of those that say so."""
        try:
            plugins, failed = _load(self.sessions, self.entries, self.deadline_ms)
        except BaseException:
            self.sessions.close()
            raise
        failures = sorted((*self.failures, *failed), key=lambda failure: failure.plugin)
        return Host(plugins, tuple(failures), self.deadline_ms, self.sessions)


def start_plugins(
    allow: Collection[str] | None = None,
    deadline_ms: int | None = DEADLINE_MS,
    *,
    expects: Collection[str] = (),
    preload: Collection[str] = PRELOAD,
) -> StartedPlugins:
    """Start the processes of the installed plugins and return at once; other work can be done while they load.

    Args:
        allow: names of the only plugins to load; None loads all.
        deadline_ms: time a plugin has for one answer, in a process of its own; None calls plugins in this process,
            which contains everything but a plugin that hangs or ends the process.
        expects: hooks that will be called; what their arguments take is made once for all processes. Others can be
            called too, a little later.
        preload: modules that plugins import, likewise imported once for all processes; no plugin's own.

    Raises:
        InputError: a name of ``allow`` is not installed.
    """
    from moeplan.hooks.faults import Fault

    entries, failures = find_plugins(allow)
    sessions = _new_sessions()
    if deadline_ms is not None:
        with suppress(Fault):  # one that has none is started when it is asked, and its fault is its own
            sessions.start(entries, expects, preload)
    return StartedPlugins(entries, failures, deadline_ms, sessions)


def open_host(
    allow: Collection[str] | None = None,
    deadline_ms: int | None = DEADLINE_MS,
    *,
    expects: Collection[str] = (),
    preload: Collection[str] = PRELOAD,
) -> Host:
    """Return a host of the installed plugins; each is loaded and asked what it is. See :func:`start_plugins`."""
    return start_plugins(allow, deadline_ms, expects=expects, preload=preload).host()


def _load(
    sessions: Sessions, entries: Sequence[PluginEntry], deadline_ms: int | None
) -> tuple[tuple[InstalledPlugin, ...], list[PluginFailure]]:
    """Return the plugins that say what they are and claim no id of another's, and the failures of the rest."""
    from moeplan.hooks.faults import Fault
    from moeplan.hooks.rules import own_info, without_collisions
    from moeplan.model.plugin import RuntimeInfo
    from moeplan.wire.converter import prepare

    prepare(RuntimeInfo)  # while the plugins load
    plugins, failures = [], []
    for entry in entries:
        try:
            (info,), hooks = _values(sessions, entry, "moeplan_runtime", [{}], deadline_ms)
            plugins.append(InstalledPlugin(entry, hooks, own_info(entry, info)))
        except Fault as fault:
            failures.append(_failure(entry, LOAD, fault))
    collisions = without_collisions([(p.name, {(r.id, r.origin) for r in p.info.rules}) for p in plugins])
    failures += [_failure(p.entry, LOAD, collisions[p.name]) for p in plugins if p.name in collisions]
    return tuple(plugin for plugin in plugins if plugin.name not in collisions), failures


def _values(
    sessions: Sessions, entry: PluginEntry, hook: str, calls: list[dict[str, Any]], deadline_ms: int | None
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Return a hook's results as the type of its specification, and the hooks the plugin has."""
    from moeplan.hooks.faults import Fault
    from moeplan.hooks.plain_data import result_type
    from moeplan.hooks.specs import HOOKS
    from moeplan.wire.converter import structure

    values, hooks = sessions.ask(entry, hook, calls, deadline_ms)
    kind = result_type(hook)
    try:
        made = tuple(structure(value, kind) for value in values)
    except InputError as error:
        raise Fault("malformed_result", f"the result is refused: {error.issues[0]}") from None
    return made, tuple(name for name in HOOKS if name in hooks)


def _failure(entry: PluginEntry, hook: str, fault: Any) -> PluginFailure:
    from moeplan.model.plugin import InputFault, PluginFailure

    issues = tuple(InputFault(**issue) for issue in fault.issues)
    return PluginFailure(entry.name, entry.version, hook, fault.code, escape(fault.message, 1000), issues)


def _without(answers: Answers[T], refused: Mapping[str, Any], hook: str) -> Answers[T]:
    """Return the answers without those of refused plugins, which become failures."""
    from moeplan.model.plugin import PluginFailure

    kept = tuple(answer for answer in answers.answers if answer.plugin not in refused)
    lost = tuple(
        PluginFailure(a.plugin, a.version, hook, refused[a.plugin].code, refused[a.plugin].message)
        for a in answers.answers
        if a.plugin in refused
    )
    return Answers(kept, answers.failures + lost)
