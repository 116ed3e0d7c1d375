"""What the plugins' log signatures call fatal in a log, as data for its importer."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping

from moeplan.diagnosis.diagnose import diagnose
from moeplan.errors import PluginError
from moeplan.workflows.diagnose import known_signatures

__all__ = ["fatal_lines"]


def fatal_lines(log: bytes, plugins: Collection[str] | None, runtime: str | None) -> Mapping[str, tuple[int, int]]:
    """Return first line and number of lines by ``<plugin>.<id>`` of each signature of severity error that is found.

    Args:
        log: the log's bytes.
        plugins: names of the only plugins to ask; None asks all.
        runtime: an engine or a plugin's name; None asks all that are loaded.

    Raises:
        InputError: a plugin is not installed, or none is for the runtime; or the log is no text.
        PluginError: a plugin failed, so that what it would have found is not known.
    """
    known = known_signatures(plugins, runtime)
    found = diagnose(io.BytesIO(log), known.signatures, versions=known.versions)
    failures = known.failures + found.failures
    if failures:
        first = failures[0]
        raise PluginError.at(first.plugin, first.code, f"its log signatures cannot be used: {first.message}")
    errors = [finding for finding in found.findings if finding.severity == "error"]
    return {f"{one.plugin}.{one.id.lower()}": (one.first_line, one.count) for one in errors}
