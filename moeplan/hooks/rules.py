"""What a plugin's answer must keep to beyond its types: its own name, ids it declared, patterns that compile."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import attrs

from moeplan.hooks.discovery import PluginEntry
from moeplan.hooks.faults import Fault
from moeplan.model.placement import Figure, Placement, RolePlacement
from moeplan.model.plan import Plan
from moeplan.model.plugin import GateCriterion, LogSignature, OfferedCriterion, PluginFinding, RuntimeInfo
from moeplan.model.preflight import Imported, ImporterInfo, ImportRequest, PreflightCheck
from moeplan.model.rendering import LintRequest, Rendering

__all__ = [
    "own_criteria",
    "own_findings",
    "own_import",
    "own_importers",
    "own_info",
    "own_lint",
    "own_placement",
    "own_preflight",
    "own_rendering",
    "own_signatures",
    "without_collisions",
]


class _Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def info(self) -> RuntimeInfo: ...


def own_info(entry: PluginEntry, info: RuntimeInfo) -> RuntimeInfo:
    """Return the information of a plugin that tells its true name and version, and each id once."""
    for what, told, true in (("name", info.plugin, entry.name), ("version", info.version, entry.version)):
        if told != true:
            raise Fault("false_name", f"it gives its {what} as {told}, and is installed as {true}")
    for what, ids in (("profile", [p.id for p in info.profiles]), ("rule", [r.id for r in info.rules])):
        _check_once(what, ids)
    return info


def own_findings(plugin: _Named, findings: tuple[PluginFinding, ...]) -> tuple[PluginFinding, ...]:
    """Return findings on plan and site under the plugin's name; they have no file but these two."""
    for finding in findings:
        if finding.file not in (None, "plan", "site") or (finding.line, finding.column) != (None, None):
            raise _misplaced(finding, "only 'plan' or 'site' and a path there say where it is")
    return _signed(plugin, findings)


def own_lint(request: LintRequest, plugin: _Named, findings: tuple[PluginFinding, ...]) -> tuple[PluginFinding, ...]:
    """Return findings in the request's sources, or the site, under the plugin's name; a line is one of its source."""
    # As many as any reader of the text may count, and one after the last.
    most = {"site": 0} | {source.name: len(source.text.splitlines()) + 1 for source in request.sources}
    for finding in findings:
        if finding.file not in most:
            raise _misplaced(finding, "it is none of the sources that the plugin was given")
        if finding.line is None and finding.column is not None:
            raise _misplaced(finding, "it has a column and no line")
        if finding.line is not None and finding.line > most[finding.file]:
            raise _misplaced(finding, "there is no such line")
    return _signed(plugin, findings)


def _misplaced(finding: PluginFinding, why: str) -> Fault:
    return Fault("false_place", f"finding {finding.id} is at {finding.file!r}, line {finding.line}; {why}")


def _signed(plugin: _Named, findings: tuple[PluginFinding, ...]) -> tuple[PluginFinding, ...]:
    """Return findings under the plugin's name; ids it did not declare and other plugins' names are refused."""
    _check_declared(plugin, (finding.id for finding in findings))
    for finding in findings:
        if finding.plugin not in (None, plugin.name):
            raise Fault("false_name", f"finding {finding.id} bears the name of plugin {finding.plugin}")
    return tuple(attrs.evolve(finding, plugin=plugin.name) for finding in findings)


def own_criteria(plan: Plan) -> Callable[[_Named, tuple[OfferedCriterion, ...]], tuple[GateCriterion, ...]]:
    """Return what makes offers criteria of the plugin; an id that the plan has already is refused."""
    taken = {criterion.id for gate in plan.validation_gates for criterion in gate.criteria}

    def own(plugin: _Named, offered: tuple[OfferedCriterion, ...]) -> tuple[GateCriterion, ...]:
        _check_once("criterion", [offer.id for offer in offered])
        for offer in offered:
            if offer.id in taken:
                raise Fault("colliding_id", f"the plan has a criterion {offer.id}; one can only be added")
        return tuple(offer.contributed(plugin.name, plugin.version) for offer in offered)

    return own


def own_signatures(plugin: _Named, signatures: tuple[LogSignature, ...]) -> tuple[LogSignature, ...]:
    """Return signatures that can be searched for: some text or a pattern that compiles, and a declared id."""
    _check_declared(plugin, (signature.id for signature in signatures))
    for signature in signatures:
        if not signature.literals and signature.pattern is None:
            raise Fault("invalid_pattern", f"signature {signature.id} has neither a literal text nor a pattern")
        try:
            re.compile(signature.pattern or "")
        except (re.error, OverflowError, RecursionError) as error:
            raise Fault("invalid_pattern", f"the pattern of {signature.id} does not compile: {error}") from None
    return signatures


def own_preflight(plugin: _Named, checks: tuple[PreflightCheck, ...]) -> tuple[PreflightCheck, ...]:
    """Return checks with each id once, for profiles that the plugin has."""
    _check_once("check", [check.id for check in checks])
    known = {profile.id for profile in plugin.info.profiles}
    for check in checks:
        for profile in check.profiles:
            if profile not in known:
                raise Fault("undeclared_id", f"check {check.id} is for profile {profile}, which the plugin lacks")
    return checks


def own_importers(_plugin: _Named, importers: tuple[ImporterInfo, ...]) -> tuple[ImporterInfo, ...]:
    """Return formats, each once."""
    _check_once("format", [importer.format for importer in importers])
    return importers


def own_import(request: ImportRequest, plugin: _Named, imported: Imported) -> Imported:
    """Return what was read under the plugin's name: findings in the request's files, rows of hosts that are named."""
    files = {file.name for file in request.files}
    for finding in imported.findings:
        if finding.file not in files or finding.line is not None or finding.column is not None:
            raise _misplaced(finding, "only a file of the request and a path in it say where it is")
    hosts = [host.host for host in imported.hosts]
    _check_once("host", hosts)
    stray = sorted({host.file for host in imported.hosts} - files) or sorted({r.host for r in imported.rows} - {*hosts})
    if stray:
        raise Fault("malformed_result", f"it names {stray[0]}, which is no file of the request or no host of its own")
    return attrs.evolve(imported, findings=_signed(plugin, imported.findings))


def own_rendering(_plugin: _Named, rendering: Rendering) -> Rendering:
    """Return a rendering in which no two files have one name, on a disk that knows no capitals either."""
    _check_once("file", [file.name.casefold() for file in rendering.files])
    return rendering


def own_placement(_plugin: _Named, placement: Placement) -> Placement:
    """Return a placement with each role once, whose figures have a value exactly where they are known."""
    _check_once("role", [role.role for role in placement.roles])
    for role in placement.roles:
        for field in attrs.fields(RolePlacement):
            figure = getattr(role, field.name)
            if isinstance(figure, Figure) and (figure.value is None) != (figure.certainty == "unknown"):
                raise Fault(
                    "malformed_result", f"{field.name} of role {role.role} is {figure.certainty} and {figure.value}"
                )
    return placement


def without_collisions(declared: Sequence[tuple[str, set[tuple[str, str]]]]) -> dict[str, Fault]:
    """Return the plugins that claim an id which another one claims too, each with its fault.

    All of them are refused: nothing tells whose the id is.

    Args:
        declared: names of plugins with what they claim, each an id and its origin; one id of one origin is shared.
    """
    owners: dict[str, dict[str, list[str]]] = {}
    for name, claims in declared:
        for key, origin in claims:
            owners.setdefault(key, {}).setdefault(origin, []).append(name)
    refused: dict[str, Fault] = {}
    for key in sorted(owners):
        if len(owners[key]) > 1:
            names = sorted({name for listed in owners[key].values() for name in listed})
            for name in names:
                refused.setdefault(name, Fault("colliding_id", f"id {key} is claimed by {', '.join(names)}"))
    return refused


def _check_declared(plugin: _Named, ids: Iterable[str]) -> None:
    declared = {rule.id for rule in plugin.info.rules}
    for one in ids:
        if one not in declared:
            raise Fault("undeclared_id", f"id {one} is not among the rules that it declares")


def _check_once(what: str, ids: Sequence[str]) -> None:
    for one, count in Counter(ids).items():
        if count > 1:
            raise Fault("colliding_id", f"{what} {one} is there twice")
