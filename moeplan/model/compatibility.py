"""The compatibility report: what a plugin finds in a plan and a site, before anything is deployed."""

from __future__ import annotations

import attrs

from moeplan.model.deployment import PROFILE_PATTERN
from moeplan.model.fields import choice, const, digest, integer, nested, sequence, text
from moeplan.model.placement import Placement
from moeplan.model.plan import GENERATOR_PATTERN
from moeplan.model.plugin import (
    PLUGIN_PATTERN,
    PROFILE_STATUSES,
    VERSION_PATTERN,
    PluginFailure,
    PluginFinding,
)

__all__ = ["CheckedPlugin", "CheckedProfile", "CompatibilityReport", "FindingCounts"]


@attrs.frozen
class CheckedPlugin:
    """The plugin that was asked."""

    name: str = text(pattern=PLUGIN_PATTERN, max_length=64)
    version: str = text(pattern=VERSION_PATTERN, max_length=63)


@attrs.frozen
class CheckedProfile:
    """The profile, and how much is known of it."""

    id: str = text(pattern=PROFILE_PATTERN, max_length=129)
    status: str = choice(*PROFILE_STATUSES)
    statement: str = text()


@attrs.frozen
class FindingCounts:
    """How many findings of each severity stand, and how many the site acknowledges."""

    error: int = integer()
    warning: int = integer()
    info: int = integer()
    acknowledged: int = integer()


@attrs.frozen(kw_only=True)
class CompatibilityReport:
    """Findings on a plan and a site. ``acknowledged`` are findings that the site accepts by id, with its reason there.

    ``judged`` is false where the plugin failed or has no checks: then no finding means nothing.
    """

    kind: str = const("compatibility_report")
    schema_version: str = const("1.0.0")
    generator: str = text(pattern=GENERATOR_PATTERN, max_length=64)
    plan: str = digest()
    site: str | None = digest(optional=True)
    plugin: CheckedPlugin = nested(CheckedPlugin)
    profile: CheckedProfile | None = nested(CheckedProfile, optional=True)
    judged: str = choice("yes", "no")
    findings: tuple[PluginFinding, ...] = sequence(PluginFinding)
    acknowledged: tuple[PluginFinding, ...] = sequence(PluginFinding)
    summary: FindingCounts = nested(FindingCounts)
    placement: Placement | None = nested(Placement, optional=True)
    failures: tuple[PluginFailure, ...] = sequence(PluginFailure)
