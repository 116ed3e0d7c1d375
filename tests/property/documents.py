"""Strategies that draw a document of any class from what its fields declare, with its cross-field rules kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType, NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import attrs
from hypothesis import strategies as st

from moeplan.model.checkpoint import PATH_PATTERN, CheckpointIndex, CheckpointManifest, root_digest
from moeplan.model.evidence import (
    RAW_TABLES,
    TABLE_ROLES,
    CheckpointDigest,
    EvidenceRecord,
    Interval,
    Preflight,
    ServingTrial,
)
from moeplan.model.fields import SCHEMA
from moeplan.model.inventory import EvidenceBundle, InventoryFile
from moeplan.model.manifest_set import ManifestSet
from moeplan.model.observations import (
    Environment,
    ExpertCounts,
    FailureTimeline,
    LoadedBytes,
    MemorySeries,
    QualityResult,
)
from moeplan.model.plan import GATE_IDS, Plan
from moeplan.model.policy import Policy
from moeplan.model.registry import Provenance, Registry, Source
from moeplan.model.run_manifest import RunManifest
from moeplan.model.site import Site, SiteNode

__all__ = ["documents"]

T = TypeVar("T")

_PLAIN = st.characters(
    exclude_categories=["Cs", "Cc"],
    exclude_characters="\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
)
_PARTS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\\u2028\u2029"), min_size=1, max_size=12
)
_PATHS = st.lists(_PARTS.filter(lambda part: part not in (".", "..")), min_size=1, max_size=3).map("/".join)
_INSTANTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(
    lambda when: when.replace(microsecond=0).isoformat() + "Z"
)


_NAME = {"type": "string", "minLength": 1, "maxLength": 64}


def documents(cls: type[T]) -> st.SearchStrategy[T]:
    """Return a strategy for valid documents of class ``cls``."""
    repair = _REPAIRS.get(cls, lambda document: document)
    return instances(cls).map(repair)


def instances(cls: type[T]) -> st.SearchStrategy[T]:
    """Return a strategy for instances of an attrs class, each field within its own declaration."""
    hints = get_type_hints(cls)
    drawn = {
        field.name: _values(hints[field.name], field.metadata.get(SCHEMA, {}))
        for field in attrs.fields(cls)  # type: ignore[arg-type]
        if "const" not in field.metadata.get(SCHEMA, {})
    }
    return st.builds(cls, **drawn)


def _values(hint: Any, keywords: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "anyOf" in keywords:
        return st.none() | st.one_of([_scalar(option) for option in keywords["anyOf"]])
    if get_origin(hint) in (Union, UnionType):
        return st.one_of([_values(member, keywords) for member in get_args(hint)])
    if hint is NoneType:
        return st.none()
    if get_origin(hint) is Mapping:
        names, item = _scalar(_NAME | keywords["propertyNames"]), _scalar(keywords["additionalProperties"])
        return st.dictionaries(names, item, max_size=2).map(MappingProxyType)
    if get_origin(hint) is tuple:
        least = keywords.get("minItems", 0)
        most = keywords.get("maxItems", least + 2)
        inner = {key: value for key, value in keywords.items() if key not in ("minItems", "maxItems")}
        return st.lists(_values(get_args(hint)[0], inner), min_size=least, max_size=most).map(tuple)
    if attrs.has(hint):
        return instances(hint)
    return _scalar(keywords)


def _scalar(keywords: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "enum" in keywords:
        return st.sampled_from(keywords["enum"])
    if keywords["type"] == "boolean":
        return st.booleans()
    if keywords["type"] == "integer":
        return st.integers(keywords["minimum"], keywords["maximum"])
    pattern, least, most = keywords["pattern"], keywords.get("minLength", 0), keywords.get("maxLength", 4096)
    if "T[0-9]{2}:" in pattern:
        return _INSTANTS
    if pattern == PATH_PATTERN:
        return _PATHS
    if pattern.startswith("^[^"):
        return st.text(_PLAIN, min_size=least, max_size=min(most, least + 20))
    return st.from_regex(pattern.removeprefix("^").removesuffix("$"), fullmatch=True).filter(
        lambda text: least <= len(text) <= most
    )


def _unique(items: tuple[Any, ...], key: Callable[[Any], Any]) -> tuple[Any, ...]:
    kept = {key(item): item for item in items}
    return tuple(kept[name] for name in sorted(kept))


def _checkpoint(document: CheckpointManifest) -> CheckpointManifest:
    files = _unique(document.files, lambda file: file.name)
    names = [file.name for file in files]
    placed = tuple(
        attrs.evolve(
            tensor, file=names[number % len(names)], dtype="U8", shape=(tensor.bytes // 4,), bytes=tensor.bytes // 4
        )
        for number, tensor in enumerate(document.tensors)
    )
    tensors = _unique(placed, lambda tensor: (tensor.file, tensor.name))
    index = document.index and CheckpointIndex(names[-1], document.index.total_size, document.index.agrees)
    total = sum(tensor.bytes for tensor in tensors)
    root = root_digest(files)
    return attrs.evolve(document, files=files, tensors=tensors, index=index, tensor_bytes=total, root=root)


def _record(document: EvidenceRecord) -> EvidenceRecord:
    start, end = sorted((document.interval.start, document.interval.end))
    if start == end:
        start, end = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
    payload, deployment = _payload(document.payload, end), document.deployment
    first = document.attachments[0] if document.attachments else None
    kept = [item for item in document.attachments if item.role not in TABLE_ROLES]
    kept += [_table(role, first) for role in RAW_TABLES[payload.type]]
    if isinstance(payload, CheckpointDigest):
        deployment = attrs.evolve(deployment, checkpoint_root=payload.root)
    engine = None if document.engine_start is None else min(document.engine_start, end)
    if isinstance(payload, LoadedBytes | ExpertCounts):
        engine = engine or start
    return EvidenceRecord(
        type=payload.type, plan=document.plan, deployment=deployment, collector=document.collector,
        interval=Interval(start, end), engine_start=engine, payload=payload, attachments=tuple(kept),
    )  # fmt: skip


def _payload(payload: Any, end: str) -> Any:
    """Return a payload whose own rules hold."""
    if isinstance(payload, ServingTrial | FailureTimeline):
        return attrs.evolve(payload, duration_ns=1 + payload.duration_ns % 10**9)
    if isinstance(payload, Preflight):
        hosts = _unique(payload.hosts, lambda host: host.name)
        return attrs.evolve(payload, hosts=tuple(attrs.evolve(host, generated=end) for host in hosts))
    if isinstance(payload, Environment):
        facts = sorted(payload.facts, key=lambda fact: (fact.part, fact.name))
        return attrs.evolve(payload, facts=_unique(tuple(facts), lambda fact: (fact.part, fact.name)))
    if isinstance(payload, MemorySeries):
        phases = tuple(
            attrs.evolve(phase, start_ns=1000 * number, end_ns=1000 * number + 999)
            for number, phase in enumerate(payload.phases)
        )
        devices = tuple(sorted(payload.devices, key=lambda device: device.id))
        return attrs.evolve(payload, phases=phases, devices=_unique(devices, lambda device: device.id))
    if isinstance(payload, ExpertCounts):
        layers = tuple(
            attrs.evolve(layer, number=number, top_k=min(layer.top_k, layer.experts))
            for number, layer in enumerate(payload.layers)
        )
        return attrs.evolve(payload, layers=layers)
    if isinstance(payload, QualityResult):
        tasks = tuple(sorted(payload.tasks, key=lambda task: (task.task, task.metric)))
        return attrs.evolve(payload, tasks=_unique(tasks, lambda task: (task.task, task.metric)))
    return payload


def _table(role: str, like: Any) -> Any:
    from moeplan.model.evidence import Attachment

    size, digest = (like.size, like.digest) if like is not None else (0, "sha256:" + "0" * 64)
    return Attachment(role, f"attachments/{role}.parquet", role, "application/vnd.apache.parquet", size, digest)


_ASKED = ("planned_requests", "requested_input_tokens", "requested_output_tokens")


def _run(document: RunManifest) -> RunManifest:
    trials = tuple(attrs.evolve(trial, number=number + 1) for number, trial in enumerate(document.trials))
    if not document.planned_trials:
        none: dict[str, Any] = dict.fromkeys(_ASKED)
        return attrs.evolve(document, trials=trials, **none)
    asked: dict[str, Any] = {name: getattr(document, name) or 1 for name in _ASKED}
    return attrs.evolve(document, trials=trials, **asked)


def _policy(document: Policy) -> Policy:
    signers = _unique(_unique(document.signers, lambda s: s.id), lambda s: s.fingerprint)
    binding = _unique(document.least_binding, lambda item: item.gate)
    return attrs.evolve(
        document, signers=signers, least_binding=binding, waivers=_unique(document.waivers, lambda w: w.criterion)
    )


def _bundle(document: EvidenceBundle) -> EvidenceBundle:
    plan = attrs.evolve(document.files[0], path="plan.json")
    files = _unique((*document.files, plan), lambda file: file.path.casefold())
    fitted = tuple(attrs.evolve(file, role=_role(file)) for file in files)
    return EvidenceBundle(files=_unique(fitted, lambda file: file.path))


def _role(file: InventoryFile) -> str:
    if file.path.startswith("evidence/"):
        return "run_manifest" if file.size % 2 else "evidence"
    return "attachment" if file.path.startswith("attachments/") else file.path.removesuffix(".json")


def _plan(document: Plan) -> Plan:
    gates = []
    for number, gate in enumerate(document.validation_gates):
        criteria = tuple(attrs.evolve(c, id=f"c-{number}-{index}") for index, c in enumerate(gate.criteria))
        gates.append(attrs.evolve(gate, id=GATE_IDS[number], order=number + 1, criteria=criteria))
    quality = tuple(
        attrs.evolve(item, correct=min(item.correct, item.documents))
        for item in _unique(
            tuple(sorted(document.objectives.quality, key=lambda item: (item.task, item.metric))),
            lambda item: (item.task, item.metric),
        )
    )
    objectives = attrs.evolve(document.objectives, quality=quality)
    return attrs.evolve(document, validation_gates=tuple(gates), objectives=objectives)


def _registry(document: Registry) -> Registry:
    sources = document.sources or (Source("s", "https://example.org/", "Example", None),)
    sources = tuple(attrs.evolve(source, id=f"s-{number}") for number, source in enumerate(sources))
    models = tuple(_named(m, number, repository=f"example/r-{number}") for number, m in enumerate(document.models))
    hardware = tuple(_named(h, number) for number, h in enumerate(document.hardware))
    compatibility = tuple(
        attrs.evolve(record, id=f"c-{number}", model=models[0].id, hardware=hardware[0].id, runtime=f"r-{number}")
        for number, record in enumerate(document.compatibility)
        if models and hardware
    )
    moved = attrs.evolve(document, sources=sources, models=models, hardware=hardware, compatibility=compatibility)
    return _sourced(moved)  # type: ignore[no-any-return]


def _named(item: Any, number: int, **rest: Any) -> Any:
    aliases = tuple(f"{number} alias {index}" for index, _alias in enumerate(item.aliases))
    return attrs.evolve(item, id=f"i-{number}", name=f"{number} {item.name[:100]}", aliases=aliases, **rest)


def _sourced(value: Any) -> Any:
    """Let every provenance lead to the first source."""
    if isinstance(value, Provenance):
        return attrs.evolve(value, source="s-0")
    if isinstance(value, tuple):
        return tuple(_sourced(item) for item in value)
    if attrs.has(type(value)):
        fields = [field.name for field in attrs.fields(type(value)) if field.init]
        return attrs.evolve(value, **{name: _sourced(getattr(value, name)) for name in fields})
    return value


def _site(document: Site) -> Site:
    nodes = document.nodes
    if isinstance(nodes, tuple):
        nodes = _unique(tuple(_node(node) for node in nodes), lambda node: node.name)
    acknowledged = document.acknowledged and _unique(document.acknowledged, lambda one: one.id)
    return attrs.evolve(document, nodes=nodes, acknowledged=acknowledged)


def _node(node: SiteNode) -> SiteNode:
    return attrs.evolve(node, free_accelerators=node.accelerators, gpu_free_bytes=node.gpu_memory_bytes)


def _manifest_set(document: ManifestSet) -> ManifestSet:
    files = _unique(document.files, lambda file: file.name.casefold())
    return attrs.evolve(
        document,
        files=tuple(sorted(files, key=lambda file: file.name)),
        images=tuple(sorted(set(document.images))),
        accepted=tuple(sorted(set(document.accepted))),
    )


_REPAIRS: dict[type, Callable[[Any], Any]] = {
    CheckpointManifest: _checkpoint,
    EvidenceRecord: _record,
    RunManifest: _run,
    Policy: _policy,
    EvidenceBundle: _bundle,
    Plan: _plan,
    Registry: _registry,
    Site: _site,
    ManifestSet: _manifest_set,
}
