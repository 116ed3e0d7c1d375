"""What is to be rendered: plan, site, sizes and options brought together, and refused where they do not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
from moeplan_vllm.families import family_of
from moeplan_vllm.placement import Placed

from moeplan.errors import InputRefusedError, Issue, escape
from moeplan.model.plan import Plan
from moeplan_vllm_cuda.data import read_data
from moeplan_vllm_cuda.gpus import Gpu, find_gpu
from moeplan_vllm_cuda.profiles import known_status
from moeplan_vllm_cuda.recipes import find_recipe
from moeplan_vllm_cuda.rendering.ground import Ground, read_ground
from moeplan_vllm_cuda.rendering.options import TIMEOUT, Options, engine_options, memory_settings
from moeplan_vllm_cuda.rendering.placing import place_roles, shortages
from moeplan_vllm_cuda.rendering.sizes import Sizes, profile_data, sizes_of
from moeplan_vllm_cuda.rendering.words import MODELS

__all__ = ["Against", "Asked", "is_accepted", "read_asked", "role_options"]

_UNSUPPORTED = "unsupported"


@attrs.frozen
class Against:
    """What speaks against a rendering, under its fact; ``permitted`` where a recipe says that it runs all the same."""

    fact: str
    issue: Issue
    permitted: bool = False


@attrs.frozen(kw_only=True)
class Asked:
    """Everything a rendering is made of.

    Attributes:
        name: the model's, fit for names of objects.
        balance: ``hybrid`` where each node of an engine has its own front end.
        options: of each role.
        placed: of each role.
        against: what speaks against it and is rendered nevertheless.
    """

    plan: Plan
    profile: str
    name: str
    gpu: Gpu
    sizes: Sizes
    balance: str | None
    ground: Ground
    options: Mapping[str, Options]
    placed: Mapping[str, Placed]
    against: tuple[Against, ...]

    @property
    def paired(self) -> bool:
        """Return whether prefill and decode are apart."""
        return len(self.options) > 1

    @property
    def timeout_seconds(self) -> int:
        """Return how long an engine waits for its ranks."""
        return max(int(one.environment[TIMEOUT]) for one in self.options.values())

    @property
    def startup_seconds(self) -> int:
        """Return the startup probe's budget: beyond the engine's own timeout, so that its message is read first."""
        beyond: int = read_data("rendering/profiles.json")["time"]["startupBeyondSeconds"]
        return self.timeout_seconds + beyond

    def workload_name(self, role: str) -> str:
        """Return the name of a role's workload; a LeaderWorkerSet makes a headless Service of its own name."""
        return f"{self.name}-{role}" if self.paired else f"{self.name}-engine"

    def service_name(self, role: str) -> str:
        """Return the name of a role's Service; of a pair the plain name is the router's."""
        return f"{self.name}-{role}-http" if self.paired else self.name

    def labels(self, component: str) -> dict[str, str]:
        """Return the labels that a component's pods are selected by."""
        instance = f"{self.name}-{self.profile}".replace("_", "-")[:63].rstrip("-.")
        return {"app.kubernetes.io/component": component, "app.kubernetes.io/instance": instance}


def read_asked(plan: Plan, site: Mapping[str, Any]) -> Asked:
    """Return what is to be rendered.

    Raises:
        InputRefusedError: the site lacks values, plan, site and profile do not fit together, or what is known of the
            model, the GPU and the layout speaks against it and the site does not acknowledge that.
    """
    profile = str(site.get("profile") or plan.deployment.profile)
    roles = profile_data(profile)["roles"]
    issues = tuple(_disagreements(plan, site))
    gpu = find_gpu(plan.target.hardware_id)
    if gpu is None or gpu.capability is None:
        told = "no NVIDIA GPU that is known"
        got = escape(plan.target.hardware_id, 60)
        issues += (Issue("$.target.hardwareId", "not_nvidia", told, "an NVIDIA GPU, such as h200", got),)
    if issues or gpu is None:
        raise InputRefusedError(*issues)
    sizes = sizes_of(plan, profile)
    draft = plan.deployment.draft_checkpoint_root is not None
    ground = read_ground(site, roles, sizes, draft=draft)
    options = role_options(plan, gpu, sizes, roles, ground.draft, ground.ready_seconds)
    placed = place_roles(plan, sizes.layout, {role: memory_settings(plan, one) for role, one in options.items()})
    against = tuple(_against(plan, profile, gpu, placed))
    refused = tuple(one.issue for one in against if not (one.permitted or is_accepted(one.fact, profile, ground)))
    if refused:
        raise InputRefusedError(*refused, source="plan")
    return Asked(
        plan=plan,
        profile=profile,
        name=object_name(plan.artifact.model_id),
        gpu=gpu,
        sizes=sizes,
        balance=profile_data(profile).get("balance"),
        ground=ground,
        options=options,
        placed=placed,
        against=against,
    )


def role_options(
    plan: Plan, gpu: Gpu, sizes: Sizes, roles: list[str], draft: str | None, ready_seconds: int | None
) -> dict[str, Options]:
    """Return the options of each role; ``draft`` is the name of the draft's directory."""
    where = None if draft is None else f"{MODELS}/{draft}"
    return {role: engine_options(plan, gpu, sizes, role, draft=where, ready_seconds=ready_seconds) for role in roles}


def object_name(model: str) -> str:
    """Return a model's id as part of names of objects: letters, digits and hyphens, 40 at most. Source: RFC 1123."""
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in model.lower())[:40].strip("-")
    return plain if plain[:1].isalpha() else f"m-{plain}"


def _disagreements(plan: Plan, site: Mapping[str, Any]) -> Iterator[Issue]:
    """Yield what plan and site say differently."""
    hardware, per_node = site.get("hardware"), site.get("acceleratorsPerNode")
    if hardware is not None and hardware != plan.target.hardware_id:
        told = "another accelerator than the plan's"
        yield Issue("$.hardware", "site_differs", told, plan.target.hardware_id, escape(str(hardware), 60))
    if per_node is not None and per_node != plan.target.accelerators_per_node:
        told, expected = "another number of accelerators than the plan's", str(plan.target.accelerators_per_node)
        yield Issue("$.acceleratorsPerNode", "site_differs", told, expected, str(per_node))


def is_accepted(fact: str, profile: str, ground: Ground) -> bool:
    """Return whether the site acknowledges a fact, or the profile as a whole."""
    return not ground.acknowledged.isdisjoint((fact, profile))


def _against(plan: Plan, profile: str, gpu: Gpu, placed: Mapping[str, Placed]) -> Iterator[Against]:
    """Yield what is known to fail of this model on this GPU in this profile, and what there is no room for."""
    repository = plan.artifact.repository
    known = known_status(profile, family_of(repository), gpu.id)
    failing = known is not None and known["status"] == "reported_failing"
    if known is not None and failing:
        told = f"{profile} is reported failing: {known['statement']}"
        yield Against(known["fact"], _refusal("$.deployment.profile", known["fact"], told, profile))
    recipe = find_recipe(repository)
    if recipe is not None and recipe.hardware.get(gpu.id) == _UNSUPPORTED:
        told = f"the recipe of {repository} calls {gpu.id} unsupported"
        yield Against("V-PLAN-006", _refusal("$.target.hardwareId", "V-PLAN-006", told, profile))
    for fact, issue in shortages(plan, placed):
        if known is not None and not failing:
            told = f"{issue.message}; against that, {known['statement']}"
            yield Against(fact, attrs.evolve(issue, message=told), permitted=True)
        else:
            yield Against(fact, issue)


def _refusal(path: str, fact: str, told: str, profile: str) -> Issue:
    step = f"choose another profile; or accept it with --accept {profile}, or acknowledge {fact} in the site"
    return Issue(path, fact, told, next=step)
