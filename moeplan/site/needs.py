"""What a profile needs of a site: the plugin's needs with those that every profile has, held against the document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moeplan.errors import InputError, Issue, PluginError, escape
from moeplan.model.plugin import SiteNeed
from moeplan.model.site import NODE_ROLES, Site
from moeplan.wire.schemas import head_of, load_schema

__all__ = ["CORE_NEEDS", "NODES", "check_needs", "key_order", "node_roles", "read_default", "with_core_needs"]

NODES = "nodes[]."

CORE_NEEDS = (
    SiteNeed(
        key="hardware",
        title="The accelerator, by its id in the registry",
        how="moeplan hardware",
        example="h200",
    ),
    SiteNeed(
        key="acceleratorsPerNode",
        title="Accelerators of one node",
        how="moeplan site probe, or nvidia-smi --list-gpus, amd-smi list",
        example="8",
    ),
    SiteNeed(
        key="driver",
        title="Version of the driver that is loaded, which may not be the one that is installed",
        how="cat /sys/module/nvidia/version or /sys/module/amdgpu/version, on each node",
        example="580.65.06",
    ),
    SiteNeed(
        key="engineVersion",
        title="Version of the engine in the image",
        how="run the image with the engine's --version",
        example="0.27.1",
    ),
    SiteNeed(
        key="nodes[].name",
        title="The node: its label kubernetes.io/hostname, or its host name without Kubernetes",
        how="kubectl get nodes --label-columns=kubernetes.io/hostname, or hostname",
        example="node-a",
    ),
    SiteNeed(
        key="nodes[].modelDirectory",
        title="Directory on this node that holds the checkpoints' directories; it may differ from node to node",
        how="ask who put the weights there; ls it on the node",
        example="/data/models",
    ),
    SiteNeed(
        key="nodes[].storage.filesystem",
        title="File system that this directory lies on, as mounted; a parent may be local while this is not",
        how="moeplan site probe --directory DIRECTORY on the node, or findmnt --target DIRECTORY",
        example="xfs",
    ),
    SiteNeed(
        key="nodes[].storage.local",
        title="Whether its bytes lie on this node (true) or come over the network (false)",
        how="moeplan site probe --directory DIRECTORY on the node",
        example="true",
    ),
    SiteNeed(
        key="nodes[].freeAccelerators",
        title="Accelerators of this node that nothing holds; what is allocatable is what there is",
        how="moeplan site probe --kube-context CONTEXT, or kubectl describe node NODE, under Allocated resources",
        example="8",
        required=False,
    ),
    SiteNeed(
        key="modelNames.target",
        title="Name of the checkpoint's directory below each modelDirectory",
        how="ls the modelDirectory",
        example="Kimi-K3",
    ),
    SiteNeed(
        key="prices.acceleratorHour",
        title="What one accelerator costs for an hour, in quotes; delete the prices where nothing is paid by the hour",
        how="the contract, or who pays for the nodes",
        example="'2.99'",
    ),
    SiteNeed(key="prices.currency", title="Its currency, ISO 4217", how="the same contract", example="USD"),
)
"""What every profile needs; a plugin's need of the same key stands in its place."""


def with_core_needs(needs: Sequence[SiteNeed]) -> tuple[SiteNeed, ...]:
    """Return a profile's needs and the core's, each key in the order of the site document.

    Of one key a plugin's own words stand before the core's; for roles that no own need covers the core's stands.
    """
    own = {need.key for need in needs if not need.roles}
    return tuple(
        sorted((*needs, *(need for need in CORE_NEEDS if need.key not in own)), key=lambda n: key_order(n.key))
    )


def node_roles(needs: Sequence[SiteNeed]) -> tuple[str, ...]:
    """Return the roles that the needs tell apart, in the order of :data:`NODE_ROLES`."""
    named = {role for need in needs for role in need.roles if need.key.startswith(NODES)}
    return tuple(role for role in NODE_ROLES if role in named)


def key_order(key: str) -> tuple[int, ...]:
    """Return the place of a key in the site document; names of mappings stand in the order given."""
    order: list[int] = []
    shape: Mapping[str, Any] = _schema()
    for step in key.replace("[]", "").split("."):
        members = shape.get("properties", {})
        order.append(list(members).index(step) if step in members else len(members))
        shape = _members(members.get(step, {}))
    return tuple(order)


def check_needs(plugin: str, needs: Sequence[SiteNeed]) -> None:
    """Refuse needs of keys that a site does not have, or defaults that their key does not take.

    Raises:
        PluginError: with every such need.
    """
    issues = []
    for need in needs:
        shape = _shape_of(need.key)
        where = f"plugin {plugin}"
        if shape is None or (need.roles and not need.key.startswith(NODES)):
            told = f"need {need.key}: a site has no such value" if shape is None else f"need {need.key}: no node's"
            issues.append(Issue(where, "unknown_site_key", told, "a key of the site, see docs/formats.md"))
            continue
        try:
            read_default(need)
        except InputError as error:
            issues.append(Issue(where, "invalid_default", f"need {need.key}: {error.issues[0].message}"))
    if issues:
        raise PluginError(*issues)


def read_default(need: SiteNeed) -> Any:
    """Return a need's default as the value its key takes; None where it has none.

    Raises:
        InputError: the key takes another type.
    """
    if need.default is None:
        return None
    kind = (_shape_of(need.key) or {}).get("type")
    if kind == "string":
        return need.default
    if kind == "integer" and need.default.isascii() and need.default.isdigit():
        return int(need.default)
    if kind == "boolean" and need.default in ("true", "false"):
        return need.default == "true"
    if kind == "array":
        return [part.strip() for part in need.default.split(",")]
    told = f"the default {escape(need.default, 60)!r} is no {kind}"
    raise InputError(Issue(need.key, "invalid_default", told, f"a value of type {kind}"))


def _schema() -> Mapping[str, Any]:
    return load_schema(*head_of(Site))


def _shape_of(key: str) -> Mapping[str, Any] | None:
    """Return the schema of a value; None for a key that the site does not have, and for an object as a whole."""
    steps = key.split(".")
    if "nodes" in steps or any(step.endswith("[]") for step in steps[1:]):
        return None
    shape: Mapping[str, Any] | None = {"type": "object", "$ref": ""}
    for step in steps:
        inside = _members(shape or {})
        shape = inside.get("properties", {}).get(step.removesuffix("[]"), inside.get("additionalProperties") or None)
        if shape is None or step.endswith("[]") != ("anyOf" in shape):
            return None
    return None if shape is None or "$ref" in shape or shape.get("type") == "object" else shape


def _members(shape: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema that lists an object's members: the object's own, or that of a list's items."""
    for option in shape.get("anyOf", ()):
        shape = option["items"] if option.get("type") == "array" else shape
    reference = shape.get("$ref")
    if reference is None:
        return shape if shape.get("type") == "object" else {}
    found: Mapping[str, Any] = _schema() if not reference else _schema()["$defs"][reference.rpartition("/")[2]]
    return found
