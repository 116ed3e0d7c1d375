"""Lint: read what is given, ask whose it is, let each plugin judge its own, put accepted findings apart."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from moeplan.errors import InputError, Issue, escape
from moeplan.findings.listed import Listed, Suppressed
from moeplan.manifests.pod_templates import find_pod_templates
from moeplan.manifests.sources import SourceFile, json_values, read_source
from moeplan.model.plugin import FactSource, PluginFailure, PluginFinding
from moeplan.model.rendering import LintRequest, ManifestSource

if TYPE_CHECKING:
    from moeplan.hooks.host import Host

__all__ = ["lint", "lint_sources", "read_sources"]

_MANIFEST_FAULT = "MANIFEST"
"""Id of findings that the core makes itself: what is wrong with a file before any plugin judges it."""


def lint(
    files: Mapping[str, bytes],
    *,
    site: Mapping[str, Any] | None = None,
    runtime: str | None = None,
    profile: str | None = None,
    plugins: Collection[str] | None = None,
) -> Listed:
    """Return what the installed plugins find in manifests and launch scripts.

    Args:
        files: contents by name; ``-`` stands for standard input.
        site: what is known of the site, as JSON values of a ``site`` document or a part of one.
        runtime: an engine or a plugin's name: then all is that plugin's. None asks the plugins whose it is.
        profile: id of a profile of the plugin's; None lets it recognise one.
        plugins: names of the only plugins to load.

    Raises:
        InputError: a file is not readable, or no plugin fits ``runtime`` and ``profile``.
    """
    from moeplan.hooks.host import start_plugins

    started = start_plugins(plugins, expects=("moeplan_owns_manifest", "moeplan_lint"))
    sources = read_sources(files)
    with started.host() as host:
        return lint_sources(host, sources, site or {}, runtime, profile)


def read_sources(files: Mapping[str, bytes]) -> tuple[SourceFile, ...]:
    """Return every file read.

    Raises:
        InputError: those that cannot be read, all of them.
    """
    read: list[SourceFile] = []
    issues: list[Issue] = []
    for name, data in files.items():
        try:
            read.append(read_source(name, data))
        except InputError as error:
            issues.extend(issue.under(f"{escape(name, 400)}: $") for issue in error.issues)
    if issues:
        raise InputError(*issues)
    return tuple(read)


def lint_sources(
    host: Host,
    sources: Sequence[SourceFile],
    site: Mapping[str, Any],
    runtime: str | None = None,
    profile: str | None = None,
) -> Listed:
    """As :func:`lint`, with an open host and files that were read."""
    owned = _Owned(sources)
    failures = list(host.failures)
    if runtime is not None or profile is not None:
        owned.all_of(_selected(host, runtime, profile))
    else:
        failures += owned.ask(host)
    requests = owned.requests(profile)
    answers = host.lint(requests, site)
    failures += answers.failures
    judged = {answer.plugin: owned.count(answer.plugin) for answer in answers.answers}
    found = [finding for answer in answers.answers for finding in answer.value]
    for name in requests:
        if name not in judged and not any(failure.plugin == name for failure in failures):
            failures.append(_no_lint(host, name))
    return _listed(sources, found, judged, owned, tuple(failures))


def _selected(host: Host, runtime: str | None, profile: str | None) -> str:
    from moeplan.hooks.selection import select_plugin

    if runtime is not None:
        return select_plugin(host.plugins, runtime, profile=profile).plugin.name
    fitting = [p for p in host.plugins if any(one.id == profile for one in p.info.profiles)]
    if len(fitting) == 1:
        return fitting[0].name
    known = sorted({one.id for p in host.plugins for one in p.info.profiles})
    message = "several plugins have this profile" if fitting else "no installed plugin has this profile"
    step = "name the plugin with --runtime" if fitting else "see 'moeplan profiles'"
    got = repr(escape(profile or "", 80))
    raise InputError(Issue("profile", "unknown_profile", message, f"one of {escape(', '.join(known), 600)}", got, step))


def _no_lint(host: Host, name: str) -> PluginFailure:
    version = next(plugin.version for plugin in host.plugins if plugin.name == name)
    message = "the plugin does not lint: it has no hook moeplan_lint"
    return PluginFailure(name, version, "moeplan_lint", "missing_hook", message)


class _Owned:
    """Which documents and scripts are which plugin's."""

    def __init__(self, sources: Sequence[SourceFile]) -> None:
        self.units: list[tuple[int, int | None]] = [
            (index, number)
            for index, source in enumerate(sources)
            for number in (range(len(source.documents)) if source.documents is not None else (None,))
        ]
        self.sources = sources
        self.mine: dict[str, set[tuple[int, int | None]]] = {}
        self.neutral = {unit for unit in self.units if self._is_neutral(unit)}

    def _is_neutral(self, unit: tuple[int, int | None]) -> bool:
        """Return whether a document runs nothing (a claim, a namespace): whoever judges the rest sees it too."""
        index, number = unit
        documents = self.sources[index].documents
        return documents is not None and number is not None and not find_pod_templates(documents[number].value)

    def all_of(self, name: str) -> None:
        self.mine[name] = set(self.units)

    def ask(self, host: Host) -> list[PluginFailure]:
        answers = host.owners([self._manifest(unit) for unit in self.units])
        for answer in answers.answers:
            mine = {unit for unit, owns in zip(self.units, answer.value, strict=True) if owns}
            if mine:
                self.mine[answer.plugin] = mine
        return list(answers.failures)

    def _manifest(self, unit: tuple[int, int | None]) -> Any:
        source = self.sources[unit[0]]
        if source.documents is None or unit[1] is None:
            return source.text
        value = source.documents[unit[1]].value
        return json_values(value) if isinstance(value, dict) else {}

    def count(self, name: str) -> int:
        return len(self.mine[name])

    def requests(self, profile: str | None) -> dict[str, LintRequest]:
        made = {}
        for name, mine in self.mine.items():
            seen = mine | self.neutral
            sources = []
            for index, source in enumerate(self.sources):
                if source.documents is None:
                    if (index, None) in seen:
                        sources.append(ManifestSource(source.name, source.text))
                    continue
                numbers = tuple(n for n in range(len(source.documents)) if (index, n) in seen)
                if numbers:
                    sources.append(ManifestSource(source.name, source.text, numbers))
            made[name] = LintRequest(tuple(sources), profile)
        return made

    def not_judged(self, judged: Collection[str]) -> tuple[tuple[str, str], ...]:
        by_someone = set().union(*(self.mine[name] for name in judged)) if judged else set()
        listed = []
        for unit in self.units:
            if unit in by_someone:
                continue
            if unit in self.neutral:
                if not judged:
                    listed.append((self._named(unit), "it runs nothing"))
                continue
            why = "its plugin failed" if any(unit in mine for mine in self.mine.values()) else "no plugin knows it"
            listed.append((self._named(unit), why))
        return tuple(listed)

    def _named(self, unit: tuple[int, int | None]) -> str:
        source = self.sources[unit[0]]
        if source.documents is None or unit[1] is None:
            return source.name
        value = source.documents[unit[1]].value
        kind = value.get("kind") if isinstance(value, dict) else None
        return f"{source.name}: document {unit[1] + 1}" + (f" ({escape(str(kind), 60)})" if kind else "")


def _listed(
    sources: Sequence[SourceFile],
    found: Sequence[PluginFinding],
    judged: Mapping[str, int],
    owned: _Owned,
    failures: tuple[PluginFailure, ...],
) -> Listed:
    every = [*found, *(_fault(source, issue) for source in sources for issue in source.faults)]
    every = sorted(dict.fromkeys(every), key=_order)
    by_name = {source.name: source for source in sources}
    accepted = {finding: _accepted(by_name.get(finding.file or ""), finding) for finding in every}
    return Listed(
        tuple(finding for finding, comment in accepted.items() if comment is None),
        tuple(comment for comment in accepted.values() if comment is not None),
        judged,
        owned.not_judged(judged),
        failures,
    )


def _order(finding: PluginFinding) -> tuple[str, int, int, str, str]:
    return finding.file or "", finding.line or 0, finding.column or 0, finding.id, finding.plugin or ""


def _accepted(source: SourceFile | None, finding: PluginFinding) -> Suppressed | None:
    if source is None or finding.line is None:
        return None
    for comment in source.suppressions:
        if comment.covers(finding.id, finding.line):
            return Suppressed(finding, comment.reason, comment.line)
    return None


def _fault(source: SourceFile, issue: Issue) -> PluginFinding:
    """Return what the reader found wrong in a file as a finding of the core's own."""
    place = re.search(r" at line ([0-9]+) column ([0-9]+)", issue.message)
    return PluginFinding(
        id=_MANIFEST_FAULT,
        plugin=None,
        severity="warning",
        path=issue.path,
        file=source.name,
        line=int(place[1]) if place else None,
        column=int(place[2]) if place else None,
        message=issue.message,
        consequence="What stands there has no effect, or not the one that is meant.",
        silent="yes",
        remedy=f"Expected: {issue.expected}." if issue.expected else "Mend it.",
        sources=(FactSource("YAML 1.2", "section 3.2.1.3, nodes"),),
    )
