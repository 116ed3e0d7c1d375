"""The site: what only the place of deployment knows. People write it; every key may be left out but a node's name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from moeplan.errors import Issue, escape
from moeplan.model.fields import (
    boolean,
    choice,
    const,
    count_or_sequence,
    identifier,
    integer,
    integer_mapping,
    nested,
    sequence,
    text,
    text_mapping,
)
from moeplan.model.node_roles import NODE_ROLES

__all__ = [
    "IMAGE_PATTERN",
    "NODE_ROLES",
    "UNLIMITED",
    "Acknowledged",
    "Site",
    "SiteKubernetes",
    "SiteModelNames",
    "SiteNetwork",
    "SiteNode",
    "SitePrices",
    "SiteStorage",
    "SiteTaint",
    "SiteToleration",
]

UNLIMITED = 2**53 - 1
"""How ``memlockBytes`` says "unlimited", so that a comparison needs no second case."""
IMAGE_PATTERN = r"^[a-z0-9][A-Za-z0-9._:/-]{0,511}@sha256:[0-9a-f]{64}$"
"""An image by digest; a tag may stand before it. Source: OCI distribution specification, "Pulling manifests"."""

_ROLE_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
_LABEL = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
"""Source: RFC 1123 section 2.1, as Kubernetes uses it for namespaces."""
_NODE_NAME = r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$"
_ADDRESS = r"^[0-9A-Za-z:]([0-9A-Za-z.:-]{0,251}[0-9A-Za-z:])?$"
_DIRECTORY = r"^/[^\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]*$"
_DEVICE = r"^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}$"
_PROFILE = r"^[a-z0-9][a-z0-9._-]{0,63}(/[a-z0-9][a-z0-9._-]{0,63})?$"
_DECIMAL = r"^[0-9]{1,12}(\.[0-9]{1,9})?$"
_LABEL_KEY = r"^[A-Za-z0-9]([A-Za-z0-9._/-]{0,315}[A-Za-z0-9])?$"
_RESOURCE = r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$"
"""An extended resource. Source: Kubernetes documentation, "Labels and Selectors", syntax of prefixed names."""
_LABEL_VALUE = r"^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


@attrs.frozen(kw_only=True)
class SiteStorage:
    """The file system a directory lies on, as mounted where it is used."""

    filesystem: str | None = text(max_length=64, absent=True)
    source: str | None = text(max_length=1024, absent=True)
    mount_point: str | None = text(pattern=_DIRECTORY, max_length=1024, absent=True)
    local: bool | None = boolean(absent=True)


@attrs.frozen(kw_only=True)
class SiteTaint:
    """A taint of a node, as Kubernetes has it."""

    key: str = text(pattern=_LABEL_KEY, max_length=317)
    value: str | None = text(pattern=_LABEL_VALUE, min_length=0, max_length=63, absent=True)
    effect: str = choice(*_EFFECTS)


@attrs.frozen(kw_only=True)
class SiteToleration:
    """A toleration that the pods get; without a key it tolerates every taint (operator ``Exists``)."""

    key: str | None = text(pattern=_LABEL_KEY, max_length=317, absent=True)
    operator: str | None = choice("Equal", "Exists", absent=True)
    value: str | None = text(pattern=_LABEL_VALUE, min_length=0, max_length=63, absent=True)
    effect: str | None = choice(*_EFFECTS, absent=True)
    toleration_seconds: int | None = integer(absent=True)


@attrs.frozen(kw_only=True)
class SiteNode:
    """One node. ``name`` is the value of its label ``kubernetes.io/hostname``, or its host name without Kubernetes."""

    name: str = text(pattern=_NODE_NAME, max_length=253)
    roles: tuple[str, ...] | None = choice(*NODE_ROLES, many=True, absent=True)
    address: str | None = text(pattern=_ADDRESS, max_length=253, absent=True)
    model_directory: str | None = text(pattern=_DIRECTORY, max_length=1024, absent=True)
    storage: SiteStorage | None = nested(SiteStorage, absent=True)
    driver: str | None = text(max_length=64, absent=True)
    accelerator_model: str | None = text(max_length=200, absent=True)
    accelerators: int | None = integer(absent=True)
    free_accelerators: int | None = integer(absent=True)
    gpu_memory_bytes: int | None = integer(absent=True)
    gpu_free_bytes: int | None = integer(absent=True)
    taints: tuple[SiteTaint, ...] | None = sequence(SiteTaint, absent=True)
    unschedulable: bool | None = boolean(absent=True)
    memlock_bytes: int | None = integer(absent=True)
    host_memory_bytes: int | None = integer(absent=True)
    shared_memory_bytes: int | None = integer(absent=True)
    rdma_devices: tuple[str, ...] | None = text(pattern=_DEVICE, max_length=128, many=True, absent=True)
    network_interface: str | None = text(pattern=_DEVICE, max_length=128, absent=True)
    gid_index: int | None = integer(le=255, absent=True)

    def faults(self) -> Iterator[Issue]:
        """Yield what no single field shows: more free accelerators, or more free memory, than there is."""
        for key, part, whole in (
            ("freeAccelerators", self.free_accelerators, self.accelerators),
            ("gpuFreeBytes", self.gpu_free_bytes, self.gpu_memory_bytes),
        ):
            if part is not None and whole is not None and part > whole:
                yield Issue(f"$.{key}", "invalid_value", "more is free than there is", f"at most {whole}", str(part))


@attrs.frozen(kw_only=True)
class SiteNetwork:
    """The network between nodes, where it is the same on each; a node's own keys stand before these."""

    interface: str | None = text(pattern=_DEVICE, max_length=128, absent=True)
    gid_index: int | None = integer(le=255, absent=True)
    rdma_devices: tuple[str, ...] | None = text(pattern=_DEVICE, max_length=128, many=True, absent=True)
    ucx_net_devices: str | None = text(max_length=1024, absent=True)
    mtu_bytes: int | None = integer(ge=68, le=65_536, absent=True)
    rdma_library: str | None = text(pattern=_DIRECTORY, max_length=1024, absent=True)
    rdma_resource: str | None = text(pattern=_RESOURCE, max_length=317, absent=True)


@attrs.frozen(kw_only=True)
class SiteModelNames:
    """Names of the checkpoints' directories below each node's model directory."""

    target: str | None = text(max_length=255, absent=True)
    draft: str | None = text(max_length=255, absent=True)


@attrs.frozen(kw_only=True)
class SiteKubernetes:
    """What the cluster is."""

    version: str | None = text(max_length=64, absent=True)
    storage_class: str | None = text(pattern=_NODE_NAME, max_length=253, absent=True)
    runtime_class: str | None = text(pattern=_NODE_NAME, max_length=253, absent=True)
    service_account: str | None = text(pattern=_NODE_NAME, max_length=253, absent=True)


@attrs.frozen(kw_only=True)
class SitePrices:
    """What an accelerator costs by the hour: an exact decimal as text, and the currency (ISO 4217)."""

    accelerator_hour: str = text(pattern=_DECIMAL, max_length=24)
    currency: str = text(pattern=r"^[A-Z]{3}$", max_length=3)


@attrs.frozen(kw_only=True)
class Acknowledged:
    """A finding that the site knows of and accepts, with the reason."""

    id: str = text(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", max_length=64)
    reason: str = text(max_length=1024)


@attrs.frozen(kw_only=True)
class Site:
    """What only the site knows. ``nodes`` is a count where the nodes themselves do not matter."""

    kind: str = const("site")
    schema_version: str = const("1.0.0")
    runtime: str | None = text(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$", max_length=64, absent=True)
    profile: str | None = text(pattern=_PROFILE, max_length=129, absent=True)
    namespace: str | None = text(pattern=_LABEL, max_length=63, absent=True)
    hardware: str | None = identifier(absent=True)
    accelerators_per_node: int | None = integer(ge=1, le=1_000_000, absent=True)
    driver: str | None = text(max_length=64, absent=True)
    engine_version: str | None = text(max_length=64, absent=True)
    model_storage: str | None = text(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$", max_length=64, absent=True)
    expected_ready_seconds: int | None = integer(ge=1, absent=True)
    nodes: int | tuple[SiteNode, ...] | None = count_or_sequence(SiteNode, le=1_000_000, absent=True)
    images: Mapping[str, str] | None = text_mapping(keys=_ROLE_NAME, pattern=IMAGE_PATTERN, absent=True)
    network: SiteNetwork | None = nested(SiteNetwork, absent=True)
    model_names: SiteModelNames | None = nested(SiteModelNames, absent=True)
    served_model_name: str | None = text(max_length=255, absent=True)
    ports: Mapping[str, int] | None = integer_mapping(keys=_ROLE_NAME, ge=1, le=65_535, absent=True)
    kubernetes: SiteKubernetes | None = nested(SiteKubernetes, absent=True)
    prices: SitePrices | None = nested(SitePrices, absent=True)
    tolerations: tuple[SiteToleration, ...] | None = sequence(SiteToleration, absent=True)
    image_pull_secrets: tuple[str, ...] | None = text(pattern=_NODE_NAME, max_length=253, many=True, absent=True)
    acknowledged: tuple[Acknowledged, ...] | None = sequence(Acknowledged, absent=True)

    def faults(self) -> Iterator[Issue]:
        """Yield what no single field shows: two nodes of one name, a finding acknowledged twice, a node's faults."""
        nodes = self.nodes if isinstance(self.nodes, tuple) else ()
        yield from _repeated("nodes", "name", [node.name for node in nodes])
        yield from _repeated("acknowledged", "id", [one.id for one in self.acknowledged or ()])
        for index, node in enumerate(nodes):
            yield from (issue.under(f"$.nodes[{index}]") for issue in node.faults())


def _repeated(key: str, name: str, values: list[str]) -> Iterator[Issue]:
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in seen:
            told = f"{escape(value, 80)!r} given twice"
            yield Issue(f"$.{key}[{index}].{name}", "duplicate_name", told, "each once")
        seen.add(value)
