"""A plan for a site: the site's profile and images enter the deployment, its plugin's criteria the gates."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from moeplan.errors import InputError, Issue, PluginError, escape
from moeplan.model.deployment import DeploymentSpec, Parallelism, RoleSpec, RuntimeIdentity
from moeplan.model.plan import Plan, Scenario
from moeplan.model.registry import Registry

if TYPE_CHECKING:
    from moeplan.hooks.host import Host

__all__ = ["plan_on_site", "site_deployment"]

_SERVING = ("prefill", "decode", "leader", "worker")


def plan_on_site(
    registry: Registry, scenario: Scenario, site: Mapping[str, Any], plugins: Collection[str] | None = None
) -> Plan:
    """Return the plan of a scenario on a site, with the criteria that the site's plugin adds.

    Args:
        registry: where the plan's claims come from.
        scenario: what is asked; what its deployment leaves open is taken from the site.
        site: JSON values of a ``site`` document; ``runtime`` names the plugin.
        plugins: names of the only plugins to load.

    Raises:
        InputError: the site names no plugin that is installed, or profile and scenario disagree.
        PluginError: the plugin failed.
    """
    from moeplan.hooks.host import open_host
    from moeplan.hooks.selection import select_plugin
    from moeplan.planning.builder import plan
    from moeplan.planning.contributed import with_criteria

    if not isinstance(site.get("runtime"), str):
        step = "write 'runtime: NAME'; 'moeplan plugins' lists them"
        raise InputError(
            Issue("site: $.runtime", "missing_key", "the site names no runtime", "a plugin's name", None, step)
        )
    deployment = site_deployment(scenario.deployment, site)
    made = plan(registry, attrs.evolve(scenario, deployment=deployment))
    with open_host(plugins) as host:
        _refuse_failures(host)
        chosen = select_plugin(host.plugins, site["runtime"], profile=deployment.profile).plugin
        answers = host.criteria(made, site, only={chosen.name})
        if answers.failures:
            answers.only()
    return with_criteria(made, [one for answer in answers.answers for one in answer.value])


def _refuse_failures(host: Host) -> None:
    if not host.plugins and host.failures:
        raise PluginError(*(Issue(f"plugin {f.plugin}", f.code, f"{f.hook}: {f.message}") for f in host.failures))


def site_deployment(given: DeploymentSpec | None, site: Mapping[str, Any]) -> DeploymentSpec:
    """Return the deployment with the site's profile, roles and images where it leaves them open.

    Raises:
        InputError: both name a profile, and not the same one.
    """
    nothing = Parallelism(None, None, None, None)
    spec = given or DeploymentSpec(None, nothing, None, None, (RoleSpec("serve", None),))
    profile = site.get("profile")
    if spec.profile is not None and profile is not None and spec.profile != profile:
        message = "the scenario and the site name different profiles"
        raise InputError(Issue("site: $.profile", "profile_differs", message, spec.profile, escape(str(profile), 100)))
    open_roles = [role.role for role in spec.roles] == ["serve"] and spec.roles[0].runtime is None
    return attrs.evolve(spec, profile=spec.profile or profile, roles=_roles(site) if open_roles else spec.roles)


def _roles(site: Mapping[str, Any]) -> tuple[RoleSpec, ...]:
    """Return prefill and decode where nodes have these roles, or else the one role that serves."""
    nodes = site.get("nodes")
    told = {role for node in nodes for role in node.get("roles", ())} if isinstance(nodes, list | tuple) else set()
    names = [role for role in _SERVING[:2] if role in told]
    return tuple(RoleSpec(name, _image(site, name)) for name in (names if len(names) == 2 else ["serve"]))


def _image(site: Mapping[str, Any], role: str) -> RuntimeIdentity | None:
    images = site.get("images", {})
    reference = images.get(role) or images.get("engine")
    if not isinstance(reference, str) or "@" not in reference:
        return None
    return RuntimeIdentity(role, "oci_image", reference.rsplit("@", 1)[1])
