"""Preflight: find the plugin that reads the files, let it read and judge them, and list what it found."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.findings.listed import Listed
from moeplan.model.preflight import Imported, ImportedSection, ImporterInfo, ImportFile, ImportRequest, PreflightCheck
from moeplan.wire.converter import unstructure

if TYPE_CHECKING:
    from moeplan.hooks.host import Host
    from moeplan.model.plugin import PluginFailure

__all__ = [
    "MAX_TOOL_BYTES",
    "PreflightReport",
    "ReadFiles",
    "importer_of",
    "known_formats",
    "preflight",
    "preflight_checks",
    "read_with_plugin",
]

MAX_TOOL_BYTES = 8 << 20
"""Most bytes of one tool's file that a plugin is given."""


@attrs.frozen
class ReadFiles:
    """Files that a plugin read: by which plugin of which version, by which format, and what is in them."""

    plugin: str
    version: str
    importer: ImporterInfo
    imported: Imported
    failures: tuple[PluginFailure, ...] = ()


@attrs.frozen
class PreflightReport:
    """What a preflight's files say, judged again; ``read.imported.findings`` under the plugin's name."""

    read: ReadFiles

    @property
    def judged(self) -> int:
        """How many sections of all hosts have a value that was judged."""
        return sum(section.found != "not_judged" for host in self.read.imported.hosts for section in host.sections)

    @property
    def errors(self) -> int:
        """How many findings are errors."""
        return self.listed().count("error")

    def listed(self) -> Listed:
        """Return the findings in the form that ``check`` and ``lint`` print."""
        not_judged = tuple(
            (f"{host.host}: {section.name}", _why(section))
            for host in self.read.imported.hosts
            for section in host.sections
            if section.found == "not_judged"
        )
        counted = {self.read.plugin: self.judged} if self.judged else {}
        return Listed(self.read.imported.findings, (), counted, not_judged, self.read.failures)

    def to_json(self) -> dict[str, Any]:
        """Return ``{"findings": […], "summary": {…}, "hosts": […], "comparisons": […]}`` as JSON values."""
        listed = self.listed().to_json()
        imported = self.read.imported
        return {
            "findings": listed["findings"],
            "summary": listed["summary"],
            "hosts": [unstructure(host) for host in imported.hosts],
            "comparisons": [unstructure(comparison) for comparison in imported.comparisons],
        }


def _why(section: ImportedSection) -> str:
    return "no value of it was judged" if section.claimed == "not_judged" else f"the tool says {section.claimed}"


def preflight(
    files: Mapping[str, bytes],
    *,
    site: Mapping[str, Any] | None = None,
    format: str | None = None,
    plugins: Collection[str] | None = None,
) -> PreflightReport:
    """Return what the installed plugin of a format finds in a preflight tool's files.

    Args:
        files: contents by name, one file a host.
        site: what is known of the site, as JSON values of a ``site`` document or a part of one.
        format: which format the files are of; None: the only one that the plugins read.
        plugins: names of the only plugins to load.

    Raises:
        InputError: no plugin reads the format, or the files are not of it.
        PluginError: the plugin failed.
    """
    from moeplan.hooks.host import open_host

    with open_host(plugins, expects=["moeplan_importers", "moeplan_import"]) as host:
        return PreflightReport(read_with_plugin(host, files, site or {}, format))


def read_with_plugin(host: Host, files: Mapping[str, bytes], site: Mapping[str, Any], format: str | None) -> ReadFiles:
    """Return what a plugin reads in the files; raises as :func:`preflight`."""
    plugin, importer = importer_of(host, format)
    request = ImportRequest(importer.format, tuple(_file(name, data) for name, data in files.items()))
    answer = host.import_files(plugin, request, site).only()
    return ReadFiles(answer.plugin, answer.version, importer, answer.value, host.failures)


def known_formats(host: Host) -> dict[str, tuple[str, ImporterInfo]]:
    """Return each format with the plugin that is asked: the first, in the order of names, that reads it."""
    found: dict[str, tuple[str, ImporterInfo]] = {}
    for answer in host.importers().answers:
        for importer in answer.value:
            found.setdefault(importer.format, (answer.plugin, importer))
    return found


def importer_of(host: Host, format: str | None) -> tuple[str, ImporterInfo]:
    """Return the plugin that reads a format, and what it says of it.

    Raises:
        InputError: ``unknown_format``, or ``several_formats`` where None is given.
    """
    formats = known_formats(host)
    if format is None and len(formats) == 1:
        return next(iter(formats.values()))
    if format is not None and format in formats:
        return formats[format]
    known = ", ".join(sorted(formats)) or "none"
    if format is None and formats:
        raise InputError(Issue("--format", "several_formats", "plugins read several formats", f"one of {known}"))
    step = "install the plugin that reads it; see 'moeplan plugins'"
    got = None if format is None else repr(escape(format, 60))
    raise InputError(Issue("--format", "unknown_format", "no installed plugin reads these files", known, got, step))


def preflight_checks(host: Host, plugin: str, profile: str | None = None) -> tuple[PreflightCheck, ...]:
    """Return what a plugin has an operator do before a deployment; with a profile, what that profile needs.

    Raises:
        PluginError: the plugin failed. One without the hook has no checks.
    """
    answers = host.preflight((plugin,))
    if not answers.answers and not answers.failures:
        return ()
    checks = answers.only().value
    return tuple(check for check in checks if profile is None or not check.profiles or profile in check.profiles)


def _file(name: str, data: bytes) -> ImportFile:
    shown = escape(name, 400)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(Issue(shown, "wrong_encoding", f"not UTF-8 at byte {error.start}", "UTF-8")) from None
    if "\0" in text:
        raise InputError(Issue(shown, "wrong_encoding", "a zero character in text", "the tool's JSON"))
    return ImportFile(shown, text)
