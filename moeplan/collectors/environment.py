"""What the probes of an engine's process and node found, as facts of an ``environment`` record. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from moeplan.model.evidence import Collector, Interval
from moeplan.model.observations import ENVIRONMENT_PARTS, Environment, EnvironmentFact, EnvironmentGap
from moeplan.units import format_instant
from moeplan.version import VERSION
from moeplan.wire.observation import MadeObservation, ObservationContext, make_observation
from moeplan.wire.pod_status import PodStatus

__all__ = ["Seen", "environment_payload", "environment_record", "facts_of_engine", "facts_of_node", "facts_of_pod"]

_NAME = re.compile(r"[^a-z0-9._-]+")
_VALUE_CHARACTERS = 400
_KERNEL_LOOKS = ("/sys/class/drm/card*/device", "/proc/driver/nvidia/gpus")
_REASONS = {
    "kernel_backend": "told by the engine's log or its /server_info",
    "precision": "told by the engine's log or its /server_info",
    "sharding": "told by the engine's log or its /server_info",
}


@attrs.frozen
class Seen:
    """Where an environment was looked at, and what was found.

    Attributes:
        node: pseudonym of the node.
        seen_from: ``node``, ``engine_process`` or ``pod``.
        facts: in any order; the first of a part and name holds.
        engine_start: seconds since the epoch at which the engine's process began, where known.
    """

    node: str
    seen_from: str
    facts: tuple[EnvironmentFact, ...]
    engine_start: int | None = None


def _fact(part: str, name: str, value: str, source: str) -> EnvironmentFact | None:
    """Return a fact, or None where name or value cannot be one."""
    name = _NAME.sub("-", name.lower()).strip("-._")[:128]
    value = "".join(c if c.isprintable() else " " for c in value).strip()[:_VALUE_CHARACTERS]
    return EnvironmentFact(part, name, value, source) if name and value else None


def _facts(part: str, values: Mapping[str, Any], source: str) -> list[EnvironmentFact]:
    made = (_fact(part, name, str(value), source) for name, value in values.items())
    return [fact for fact in made if fact is not None]


def facts_of_engine(told: Mapping[str, Any]) -> list[EnvironmentFact]:
    """Return the facts in what ``engine_probe.py`` printed of a process."""
    source = "engine-probe"
    facts: list[EnvironmentFact] = []
    for part, values in (told.get("parts") or {}).items():
        if part in ENVIRONMENT_PARTS and isinstance(values, Mapping):
            facts += _facts(part, values, source)
    packages = (told.get("parts") or {}).get("packages") or {}
    if told.get("distributionsDigest"):
        text = f"{told['distributionsDigest']} of {told['distributions']}"
        facts += _facts("packages", {"distributions": text}, source)
    for engine in ("vllm", "sglang"):
        if engine in packages:
            facts += _facts("runtime", {"engine": engine, "version": packages[engine]}, source)
    if type(told.get("started")) is int:
        facts += _facts("runtime", {"started": format_instant(told["started"])}, source)
    return facts


def facts_of_node(told: Mapping[str, Any]) -> list[EnvironmentFact]:
    """Return the facts in what the site's ``node_probe.py`` printed; no name, path or mount's source."""
    source, values = "node-probe", told.get("values") or {}
    facts = _facts(
        "accelerator",
        {
            name: values[key]
            for name, key in (
                ("count", "accelerators"),
                ("model", "acceleratorModel"),
                ("memory-bytes", "gpuMemoryBytes"),
            )
            if key in values
        },
        source,
    )
    if "driver" in values:
        facts += _facts("driver", {"version": values["driver"]}, source)
    if "rdmaDevices" in values:
        devices = values["rdmaDevices"]
        facts += _facts("network", {"rdma-devices": " ".join(devices) if devices else "none"}, source)
    if "gidIndex" in values:
        facts += _facts("network", {"gid-index": values["gidIndex"]}, source)
    limits = (
        ("memlock-bytes", "memlockBytes"),
        ("shared-memory-bytes", "sharedMemoryBytes"),
        ("memory-bytes", "hostMemoryBytes"),
    )
    facts += _facts("operating_system", {name: values[key] for name, key in limits if key in values}, source)
    if "accelerators" not in values and _none_in_kernel(told.get("looks") or ()):
        facts += _facts("accelerator", {"count": "0"}, source)
        facts += _facts("driver", {"version": "none: the kernel has no accelerator and no module of one"}, source)
    return facts


def _none_in_kernel(looks: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether every look at the kernel itself was made and found none; a tool that is missing shows nothing."""
    outcomes = {(row.get("what"), row.get("how")): row.get("outcome") for row in looks}
    wanted = [outcomes.get(("accelerators", how)) for how in _KERNEL_LOOKS]
    wanted += [outcome for (what, _how), outcome in outcomes.items() if what == "driver"]
    return len(wanted) > len(_KERNEL_LOOKS) and all(outcome == "not_found" for outcome in wanted)


def facts_of_pod(pod: PodStatus) -> list[EnvironmentFact]:
    """Return the image of every container that lends code, init containers and sidecars too, by digest; no name."""
    images = {
        f"image-{one.kind}-{number}": one.image or "no digest in the status"
        for number, one in enumerate(pod.containers)
    }
    restarts = {"restarts": sum(one.restarts for one in pod.containers)}
    return _facts("container", {"runtime": "kubernetes", **images, **restarts}, "kubectl")


def environment_payload(seen: Seen) -> Environment:
    """Return the facts in order, each once, and a gap for every part of which there is none."""
    first: dict[tuple[str, str], EnvironmentFact] = {}
    for fact in seen.facts:
        first.setdefault((fact.part, fact.name), fact)
    parts = {part for part, _name in first}
    gaps = [
        EnvironmentGap(part, _REASONS.get(part, "looked for and not found"))
        for part in ENVIRONMENT_PARTS
        if part not in parts
    ]
    return Environment(
        node=seen.node, seen_from=seen.seen_from, facts=tuple(first[key] for key in sorted(first)), gaps=tuple(gaps)
    )


def environment_record(seen: Seen, context: ObservationContext, interval: Interval) -> MadeObservation:
    """Return the record of one node's environment.

    Raises:
        InputError: the facts contradict each other.
    """
    start = None if seen.engine_start is None else format_instant(seen.engine_start)
    collector = Collector("moeplan", VERSION, "environment", "1")
    return make_observation(
        environment_payload(seen), {}, context=context, collector=collector, interval=interval, engine_start=start
    )
