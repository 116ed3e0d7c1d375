"""Which profile suits an aim: from the plugins' facts alone, with what only a measurement can settle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from moeplan.errors import InputError
from moeplan.hooks.host import Host, InstalledPlugin
from moeplan.model.plan import Plan
from moeplan.model.plugin import AIMS, FactSource, Profile

__all__ = ["ProfileChoice", "choose_profiles"]

_SUITS = {"yes": 0, "open": 1, "no": 2}
_STATUS = {"measured": 0, "recipe_only": 1, "calculated": 2, "reported_failing": 3}


@attrs.frozen(kw_only=True)
class ProfileChoice:
    """A profile held against one aim of a plan.

    Attributes:
        aim: one of ``AIMS``.
        plugin: the plugin's name.
        profile: the profile's id.
        status: how much is known of it at all.
        fits: whether the plan has what it runs on.
        obstacles: why not.
        suits: ``yes``, ``no``, or ``open``: only a measurement tells.
        statement: why.
        sources: who says so.
    """

    aim: str
    plugin: str
    profile: str
    status: str
    fits: bool
    obstacles: tuple[str, ...]
    suits: str
    statement: str
    sources: tuple[FactSource, ...]


def choose_profiles(host: Host, plan: Plan, aims: Sequence[str] = AIMS) -> tuple[ProfileChoice, ...]:
    """Return the profiles of the plugins for the plan's runtime and vendor, the best for each aim first.

    What fits comes before what does not, what suits before what is open, what was measured before what was not. A
    profile fits where its plugin has no error to say of the plan with it, whatever the site. Nothing is inferred: an
    aim of which a plugin says nothing gives no row.
    """
    found = [
        ProfileChoice(
            aim=known.aim,
            plugin=plugin.name,
            profile=profile.id,
            status=profile.status,
            fits=not obstacles,
            obstacles=obstacles,
            suits=known.suits,
            statement=known.statement,
            sources=known.sources,
        )
        for plugin in _for_plan(host.plugins, plan)
        for profile in plugin.info.profiles
        if any(known.aim in aims for known in profile.aims)
        for obstacles in [(*_obstacles(profile, plan), *_checked(host, plugin.name, profile, plan))]
        for known in profile.aims
        if known.aim in aims
    ]
    return tuple(sorted(found, key=_rank))


def _rank(choice: ProfileChoice) -> tuple[int, bool, int, int, str, str]:
    standing = (not choice.fits, _SUITS[choice.suits], _STATUS[choice.status])
    return (AIMS.index(choice.aim), *standing, choice.plugin, choice.profile)


def _for_plan(plugins: Sequence[InstalledPlugin], plan: Plan) -> list[InstalledPlugin]:
    from moeplan.catalogue.registries import find_accelerator, load_registry

    try:
        vendor = find_accelerator(load_registry(), plan.target.hardware_id).vendor.lower()
    except InputError:
        vendor = None
    runtime = plan.target.runtime
    return [p for p in plugins if runtime in (p.name, p.info.engine) and vendor in (None, p.info.vendor)]


def _checked(host: Host, plugin: str, profile: Profile, plan: Plan) -> Iterator[str]:
    """Yield what the plugin's check finds wrong in the plan with this profile, on whatever site."""
    on_it = attrs.evolve(plan, deployment=attrs.evolve(plan.deployment, profile=profile.id))
    answers = host.check(on_it, {}, only={plugin})
    for answer in answers.answers:
        for finding in answer.value:
            if finding.severity == "error" and finding.file == "plan":
                yield f"{finding.id}: {finding.message}"
    for failure in answers.failures:
        yield f"its plugin could not check it: {failure.message}"


def _obstacles(profile: Profile, plan: Plan) -> Iterator[str]:
    target = plan.target
    if profile.models and plan.artifact.model_id not in profile.models:
        yield f"it is for {', '.join(profile.models)}, the plan for {plan.artifact.model_id}"
    if profile.accelerators is not None and profile.accelerators > target.requested_accelerators:
        yield f"it runs on {profile.accelerators} accelerators, the plan has {target.requested_accelerators}"
    if profile.nodes is not None and profile.nodes * target.accelerators_per_node > target.requested_accelerators:
        yield f"it needs {profile.nodes} node(s) of {target.accelerators_per_node}"
    least = plan.residency.minimum_accelerators
    most = profile.accelerators or (target.accelerators_per_node if profile.nodes == 1 else None)
    if least is not None and most is not None and most < least:
        yield f"the checkpoint needs {least} accelerators, it runs on {most}"
    if profile.status == "reported_failing":
        yield "it is reported to fail"
