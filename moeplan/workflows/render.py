"""Render: the one plugin that fits the site is asked, and what it gives becomes a directory's files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from moeplan.errors import InputError, Issue, PluginError, escape
from moeplan.workflows.disagreements import disagreements

if TYPE_CHECKING:
    from moeplan.hooks.host import Host
    from moeplan.hooks.selection import Selection
    from moeplan.model.plan import Plan
    from moeplan.model.plugin import PluginFinding, Profile
    from moeplan.model.site import Site
    from moeplan.rendering.assembly import RenderedSet

__all__ = ["plugins_for", "render"]


def render(plan: Plan, site: Site, host: Host | None = None, *, accept: Collection[str] = ()) -> RenderedSet:
    """Return the files that deploy a plan on a site.

    The plugin is asked twice and has to say the same. Nothing is written.

    Args:
        plan: the plan, form 1.1.0.
        site: the site; it names runtime and profile.
        host: the plugins to choose from; None opens those that are installed.
        accept: ids of profiles that are rendered although they are reported failing, in general or for the plan.

    Raises:
        InputError: no plugin fits, the site lacks a value that the profile needs, or the profile is reported failing
            and not accepted.
        PluginError: the plugin failed, or what it rendered is refused.
    """
    from moeplan.hooks.host import open_host

    if host is not None:
        return _render(plan, site, host, accept)
    with open_host(_only(site.runtime)) as opened:
        return _render(plan, site, opened, accept)


def plugins_for(site: bytes) -> Collection[str] | None:
    """Return the names of the only plugins worth loading for a site, None where all are.

    It looks for the runtime and nothing else, so that plugins can be started before the site is read as a whole.
    """
    from moeplan.wire.yaml_text import parse_yaml_strict

    try:
        values = parse_yaml_strict(site)
    except InputError:  # whoever reads the site says what is wrong
        return None
    runtime = values.get("runtime") if isinstance(values, dict) else None
    return _only(runtime) if isinstance(runtime, str) else None


def _only(runtime: str | None) -> Collection[str] | None:
    """Return the plugin that bears the runtime's name, where one is installed: no other one can be selected then."""
    from moeplan.hooks.discovery import find_plugins

    return (runtime,) if runtime and any(entry.name == runtime for entry in find_plugins()[0]) else None


def _render(plan: Plan, site: Site, host: Host, accept: Collection[str]) -> RenderedSet:
    from moeplan.rendering.assembly import RenderedWith, assemble
    from moeplan.wire.converter import unstructure

    chosen, profile = _select(site, host)
    _check_status(profile, accept)
    _check_profile(plan, profile)
    values = unstructure(site)
    values = _with_accepted(values, accept)
    _check_site(plan, values, profile, host, chosen.plugin.name)
    answers = [host.render(plan, values, (chosen.plugin.name,)).only() for _ in range(2)]
    if answers[0] != answers[1]:
        where = f"plugin {chosen.plugin.name}"
        raise PluginError(Issue(where, "not_deterministic", "moeplan_render answers the same question in two ways"))
    name = f"{chosen.plugin.name}@{chosen.plugin.version}"
    made_with = RenderedWith(name, chosen.plugin.info.engine, profile, tuple(sorted(set(accept))))
    made = assemble(plan, site, answers[0].value, made_with)
    _check_images(plan, made)
    return made


def _select(site: Site, host: Host) -> tuple[Selection, Profile]:
    from moeplan.hooks.selection import select_plugin

    step = "'moeplan profiles' lists what there is"
    absent = [key for key, value in (("runtime", site.runtime), ("profile", site.profile)) if value is None]
    if absent:
        raise InputError(
            *(Issue(f"$.{key}", "site_value_missing", f"the site names no {key}", next=step) for key in absent),
            source="site",
        )
    failed = tuple(failure for failure in host.failures if failure.plugin == site.runtime)
    if failed:
        told = (
            Issue(f"plugin {f.plugin}", f.code, f"{f.hook}: {f.message}", next="see 'moeplan plugins'") for f in failed
        )
        raise PluginError(*told)
    assert site.runtime is not None
    chosen = select_plugin(host.plugins, site.runtime, profile=site.profile)
    assert chosen.profile is not None
    return chosen, chosen.profile


def _with_accepted(values: dict[str, Any], accept: Collection[str]) -> dict[str, Any]:
    """Return the site as the plugin sees it: an accepted profile is acknowledged; it may fail with this model only."""
    told = [{"id": one, "reason": "accepted on the command line"} for one in sorted(set(accept))]
    return values | {"acknowledged": [*values.get("acknowledged", ()), *told]} if told else values


def _check_status(profile: Profile, accept: Collection[str]) -> None:
    others = sorted(set(accept) - {profile.id})
    if others:
        told = "this profile is not the one that is rendered"
        raise InputError(Issue("--accept", "not_rendered", told, profile.id, escape(", ".join(others), 200)))
    if profile.status == "reported_failing" and profile.id not in accept:
        told = f"profile {profile.id} is reported failing: {escape(profile.statement, 400)}"
        step = f"choose another one (see 'moeplan profiles'), or accept it with --accept {profile.id}"
        raise InputError(Issue("$.profile", "reported_failing", told, next=step), source="site")


def _check_profile(plan: Plan, profile: Profile) -> None:
    wanted = plan.deployment.profile
    if wanted is not None and wanted != profile.id:
        told = "the plan is for another profile than the site's"
        raise InputError(Issue("$.deployment.profile", "other_profile", told, profile.id, wanted), source="plan")


def _check_images(plan: Plan, made: RenderedSet) -> None:
    """Refuse files that do not run an image that the plan is for: nothing measured on them could count."""
    run = {image.rpartition("@")[2] for image in made.manifest_set.images}
    issues = [
        Issue(
            f"$.deployment.roles[{at}].runtime.digest",
            "other_image",
            f"the plan's image of role {role.role} is none that is run",
            ", ".join(sorted(run)),
            role.runtime.digest,
            "plan with the image that the site names, or name the plan's image under the site's images",
        )
        for at, role in enumerate(plan.deployment.roles)
        if role.runtime is not None and role.runtime.form == "oci_image" and role.runtime.digest not in run
    ]
    if issues:
        raise InputError(*issues, source="plan")


def _check_site(plan: Plan, site: Mapping[str, Any], profile: Profile, host: Host, plugin: str) -> None:
    """Refuse a site that lacks what the profile needs, every value at once, or that is not the plan's."""
    missing = {issue.path: issue for issue in _missing(profile, site)}
    if missing:
        missing = {issue.path: issue for issue in _missed_by(plugin, plan, site, host)} | missing
        raise InputError(*missing.values(), source="site")
    accepted = {one["id"] for one in site.get("acknowledged", ())}
    refused = [one for one in disagreements(plan, site) if one.id not in accepted]
    for file in sorted({str(one.file) for one in refused}):
        raise InputError(*(_as_issue(one) for one in refused if one.file == file), source=file)


def _as_issue(finding: PluginFinding) -> Issue:
    step = f"{finding.remedy}, or acknowledge {finding.id} in the site with the reason"
    return Issue(finding.path, finding.id, finding.message, next=step)


def _missed_by(plugin: str, plan: Plan, site: Mapping[str, Any], host: Host) -> Iterator[Issue]:
    """Yield what the plugin itself finds missing in a site that lacks some value, where it says so."""
    try:
        host.render(plan, site, (plugin,)).only()
    except InputError as error:
        yield from (issue for issue in error.issues if issue.code == "site_value_missing")
    except PluginError:  # it may rely on what its profile says to need
        return


def _missing(profile: Profile, site: Mapping[str, Any]) -> Iterator[Issue]:
    """Yield each required value that the profile needs and the site lacks, by its path."""
    for need in profile.site_needs:
        if need.required:
            expected = None if need.example is None else f"a value such as {need.example}"
            for path in _absent(site, need.key.split("."), "$", need.roles):
                yield Issue(path, "site_value_missing", f"not given: {need.title}", expected, None, need.how)


def _absent(value: Any, steps: list[str], path: str, roles: Collection[str]) -> Iterator[str]:
    if not steps:
        return
    key = steps[0].removesuffix("[]")
    here = value.get(key) if isinstance(value, Mapping) else None
    if here is None:
        yield f"{path}.{'.'.join(steps)}"
    elif not steps[0].endswith("[]"):
        yield from _absent(here, steps[1:], f"{path}.{key}", roles)
    elif not isinstance(here, list) or not here:
        yield f"{path}.{key}"
    else:
        for index, item in enumerate(here):
            if _concerned(item, roles):
                yield from _absent(item, steps[1:], f"{path}.{key}[{index}]", roles)


def _concerned(node: Any, roles: Collection[str]) -> bool:
    """Return whether a need that is bound to roles is a need of this node."""
    own = node.get("roles") if isinstance(node, Mapping) else None
    return not roles or not own or "any" in own or bool(set(own) & set(roles))
