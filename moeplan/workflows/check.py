"""Check: does the plan fit the site? The core compares the two, the site's plugin knows the rest."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from moeplan.errors import InputError
from moeplan.findings.listed import SEVERITIES
from moeplan.model.compatibility import CheckedPlugin, CheckedProfile, CompatibilityReport, FindingCounts
from moeplan.model.placement import Placement
from moeplan.model.plan import Plan
from moeplan.model.plugin import PluginFailure, PluginFinding, Profile
from moeplan.version import GENERATOR
from moeplan.workflows.disagreements import disagreements

if TYPE_CHECKING:
    from moeplan.hooks.host import Host, InstalledPlugin

__all__ = ["check", "check_with"]

_ORDER = {severity: rank for rank, severity in enumerate(reversed(SEVERITIES))}


def check(
    plan: Plan,
    site: Mapping[str, Any] | None = None,
    *,
    site_digest: str | None = None,
    manifests: Mapping[str, bytes] | None = None,
    runtime: str | None = None,
    plugins: Collection[str] | None = None,
) -> CompatibilityReport:
    """Return what the site's plugin finds in a plan and a site, and in manifests where some are given.

    Args:
        plan: the plan, form 1.1.0.
        site: JSON values of a ``site`` document; ``runtime`` names the plugin.
        site_digest: digest of the site's document, for the report.
        manifests: contents by name of what is to be deployed; they are linted as the plugin's.
        runtime: the plugin or engine, where the site names none.
        plugins: names of the only plugins to load.

    Raises:
        InputError: no plugin fits, or a manifest is not readable.
    """
    from moeplan.hooks.host import open_host

    with open_host(plugins, expects=("moeplan_check", "moeplan_placement")) as host:
        return check_with(host, plan, site or {}, site_digest, manifests or {}, runtime)


def check_with(
    host: Host,
    plan: Plan,
    site: Mapping[str, Any],
    site_digest: str | None,
    manifests: Mapping[str, bytes],
    runtime: str | None = None,
) -> CompatibilityReport:
    """As :func:`check`, with an open host."""
    from moeplan.wire.documents import identify

    plugin, profile = _select(host, plan, site, runtime)
    answers = host.check(plan, site, only={plugin.name})
    failures: list[PluginFailure] = [f for f in host.failures if f.plugin == plugin.name] + list(answers.failures)
    found = [*disagreements(plan, site), *(finding for answer in answers.answers for finding in answer.value)]
    placement = _placement(host, plugin, plan, site, failures)
    if manifests:
        found += _linted(host, plugin, profile, manifests, site, failures)
    found = sorted(dict.fromkeys(found), key=_rank)
    accepted = {one["id"] for one in site.get("acknowledged", ())}
    standing = tuple(finding for finding in found if finding.id not in accepted)
    acknowledged = tuple(finding for finding in found if finding.id in accepted)
    error, warning, info = (sum(1 for one in standing if one.severity == severity) for severity in _ORDER)
    return CompatibilityReport(
        generator=GENERATOR,
        plan=identify(plan),
        site=site_digest,
        plugin=CheckedPlugin(plugin.name, plugin.version),
        profile=None if profile is None else CheckedProfile(profile.id, profile.status, profile.statement),
        judged="yes" if answers.answers else "no",
        findings=standing,
        acknowledged=acknowledged,
        summary=FindingCounts(error, warning, info, len(acknowledged)),
        placement=placement,
        failures=tuple(failures),
    )


def _rank(finding: PluginFinding) -> tuple[int, str, int, str, str]:
    return _ORDER[finding.severity], finding.file or "", finding.line or 0, finding.id, finding.path


def _select(
    host: Host, plan: Plan, site: Mapping[str, Any], runtime: str | None
) -> tuple[InstalledPlugin, Profile | None]:
    from moeplan.hooks.selection import select_plugin

    named = runtime or site.get("runtime") or plan.target.runtime
    profile = site.get("profile") or plan.deployment.profile
    chosen = select_plugin(host.plugins, named, _vendor(host, plan, named), profile)
    return chosen.plugin, chosen.profile


def _vendor(host: Host, plan: Plan, named: str) -> str | None:
    """Return the vendor of the plan's accelerators where the name alone is an engine's and leaves several plugins."""
    if any(plugin.name == named for plugin in host.plugins):
        return None
    from moeplan.catalogue.registries import find_accelerator, load_registry

    try:
        vendor = find_accelerator(load_registry(), plan.target.hardware_id).vendor
    except InputError:
        return None
    return vendor.lower()


def _placement(
    host: Host, plugin: InstalledPlugin, plan: Plan, site: Mapping[str, Any], failures: list[PluginFailure]
) -> Placement | None:
    answers = host.placement(plan, site, only={plugin.name})
    failures.extend(answers.failures)
    return answers.answers[0].value if answers.answers else None


def _linted(
    host: Host,
    plugin: InstalledPlugin,
    profile: Profile | None,
    manifests: Mapping[str, bytes],
    site: Mapping[str, Any],
    failures: list[PluginFailure],
) -> Sequence[PluginFinding]:
    from moeplan.workflows.lint import lint_sources, read_sources

    listed = lint_sources(host, read_sources(manifests), site, plugin.name, None if profile is None else profile.id)
    failures.extend(f for f in listed.failures if f not in failures)
    return listed.findings
