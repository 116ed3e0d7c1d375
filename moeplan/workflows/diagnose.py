"""The log signatures of the installed plugins, ready for :func:`moeplan.diagnosis.diagnose.diagnose`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.model.plugin import LogSignature, PluginFailure

if TYPE_CHECKING:
    from moeplan.hooks.host import Host

__all__ = ["KnownSignatures", "known_signatures"]


@attrs.frozen
class KnownSignatures:
    """What the plugins know of logs: signatures and version of each by its name, and the plugins that failed."""

    signatures: Mapping[str, tuple[LogSignature, ...]]
    versions: Mapping[str, str]
    failures: tuple[PluginFailure, ...]


def known_signatures(
    plugins: Collection[str] | None = None, runtime: str | None = None, *, deadline_ms: int | None = 10_000
) -> KnownSignatures:
    """Ask the installed plugins for their log signatures; one that fails is named and the rest goes on.

    Args:
        plugins: names of the only plugins to load; None loads all.
        runtime: an engine, or a plugin's name; None asks all that are loaded.
        deadline_ms: time a plugin has for one answer; None asks in this process.

    Raises:
        InputError: a plugin is not installed, or none is for the runtime.
    """
    from moeplan.hooks.host import open_host

    with open_host(plugins, deadline_ms, expects=("moeplan_log_signatures",)) as host:
        answers = host.log_signatures(None if runtime is None else _of_runtime(host, runtime))
        return KnownSignatures(
            {answer.plugin: answer.value for answer in answers.answers},
            {answer.plugin: answer.version for answer in answers.answers},
            host.failures + answers.failures,
        )


def _of_runtime(host: Host, runtime: str) -> set[str]:
    found = {plugin.name for plugin in host.plugins if runtime in (plugin.name, plugin.info.engine)}
    if found:
        return found
    known = {plugin.name for plugin in host.plugins} | {plugin.info.engine for plugin in host.plugins}
    near = get_close_matches(runtime, known, 1)
    step = f"did you mean {near[0]!r}?" if near else "see 'moeplan plugins'"
    wanted = f"one of {', '.join(sorted(known))}" if known else "an installed plugin; none is"
    message = "no installed plugin is for this runtime"
    raise InputError(
        Issue("--runtime", "unknown_runtime", message, escape(wanted, 400), repr(escape(runtime, 60)), step)
    )
