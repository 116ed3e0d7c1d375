"""What an InferaDeployment must have as a whole: names, services, and that its parts find each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from moeplan.errors import InputError
from moeplan.facts.judge import Hit, Rule
from moeplan.facts.launches import Scene, Subject
from moeplan.manifests.containers import Container
from moeplan.manifests.quantities import parse_quantity
from moeplan_infera.programs import infera_role
from moeplan_infera.reading import groups, infera_documents, listed, mapping, place_of, services, value, volume_at

__all__ = ["RULES"]

_NAME = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
_SERVICE = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_MOST = 63
"""Longest label and DNS name. Source: RFC 1123 section 2.1; Kubernetes, Labels and Selectors."""
_FLAT = ("args", "env", "image", "resources")
_OWN_FIELDS = ("POD_NAME", "POD_NAMESPACE", "POD_IP")
_AGREED = {"--request-transport": "nats", "--discovery-backend": "kubernetes"}
"""What server and workers must agree on, with its default. Source: Infera, args.py of engine and server."""


def _ignored(scene: Scene) -> Iterator[Hit]:
    for document in infera_documents(scene):
        verbatim = [name for name, service in services(document).items() if "extraPodSpec" in mapping(service)]
        for name in verbatim:
            for key in _FLAT:
                if key in services(document)[name]:
                    message = f"{key} of service {name} is ignored beside its extraPodSpec"
                    yield Hit(place_of(document, "spec", "services", name, key), message, document)
        if verbatim and value(document, "document spec.envs").is_known:
            message = f"spec.envs is ignored by {', '.join(verbatim)}, which have an extraPodSpec"
            yield Hit(place_of(document, "spec", "envs"), message, document)


def _quantities(scene: Scene) -> Iterator[Hit]:
    for document in infera_documents(scene):
        for steps, given in _given_quantities(document):
            try:
                parse_quantity(given)
            except InputError:
                yield Hit(place_of(document, *steps), f"{steps[-1]} is {given}, which is no quantity", document)


def _given_quantities(document: Subject) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    size = value(document, "document spec.nats.storageSize")
    if size.is_known:
        yield ("spec", "nats", "storageSize"), size.value
    for name, service in services(document).items():
        here = ("spec", "services", name)
        flat = mapping(mapping(service).get("resources"))
        for key in ("cpu", "memory", "sharedMemory"):
            if flat.get(key) is not None:
                yield (*here, "resources", key), flat[key]
        for steps, given in _pod_quantities(mapping(mapping(service).get("extraPodSpec"))):
            yield (*here, "extraPodSpec", *steps), given


def _pod_quantities(pod: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    for index, container in enumerate(listed(pod.get("containers"))):
        for half in ("requests", "limits"):
            for key, given in mapping(mapping(mapping(container).get("resources")).get(half)).items():
                yield ("containers", index, "resources", half, key), given
    for index, volume in enumerate(listed(pod.get("volumes"))):
        limit = mapping(mapping(volume).get("emptyDir")).get("sizeLimit")
        if limit is not None:
            yield ("volumes", index, "emptyDir", "sizeLimit"), limit


def _names(scene: Scene) -> Iterator[Hit]:
    for document in infera_documents(scene):
        name = value(document, "document metadata.name").value
        if not isinstance(name, str):
            continue
        place = place_of(document, "metadata", "name")
        if _NAME.fullmatch(name) is None:
            yield Hit(place, f"{name} is no DNS-1035 label", document)
            continue
        longest = max((f"{name}-{service}" for service in services(document)), key=len, default=name)
        if len(longest) > _MOST:
            yield Hit(place, f"{longest} has {len(longest)} characters, {_MOST} are allowed", document)


def _keys(scene: Scene) -> Iterator[Hit]:
    for document in infera_documents(scene):
        for name in services(document):
            if _SERVICE.fullmatch(name) is None:
                yield Hit(place_of(document, "spec", "services", name), f"{name} is no DNS label", document)


def _roles(scene: Scene, document: Subject) -> list[str]:
    """Return the role of each worker service: its own, or what its engine's KV connector makes of one without."""
    by_service = {one.template.role: infera_role(one) for one in scene.engines(document.group) if one.template}
    found = []
    for name, service in services(document).items():
        if mapping(service).get("componentType") != "server":
            own = mapping(service).get("role")
            found.append(own if isinstance(own, str) and own != "mixed" else by_service.get(name, "mixed"))
    return found


def _pools(scene: Scene) -> Iterator[Hit]:
    for document in infera_documents(scene):
        roles = _roles(scene, document)
        counts = {role: roles.count(role) for role in ("prefill", "decode")}
        if any(counts.values()) and set(counts.values()) != {1}:
            message = f"{counts['prefill']} prefill and {counts['decode']} decode services; one of each is needed"
            yield Hit(place_of(document, "spec", "services"), message, document)


def _no_server(scene: Scene) -> Iterator[Hit]:
    for document in infera_documents(scene):
        kinds = [mapping(service).get("componentType") for service in services(document).values()]
        if kinds and "server" not in kinds and value(document, "document spec.gaie.enabled").value is not True:
            yield Hit(place_of(document, "spec", "services"), "no service has componentType server", document)


def _tokenizers(scene: Scene) -> Iterator[Hit]:
    for routers, engines in groups(scene):
        models = {one.model_reference.rstrip("/") for one in engines if one.model_reference is not None}
        for router in routers:
            given = value(router, "argument --router-tokenizer-path")
            place = given.place or router.place()
            if given.state == "absent":
                yield Hit(place, "--router-tokenizer-path is not given", router)
            elif given.is_known and models and str(given.value).rstrip("/") not in models:
                message = f"--router-tokenizer-path is {given.value}, the workers serve {', '.join(sorted(models))}"
                yield Hit(place, message, router)
            elif given.is_known and _is_outside(router, str(given.value)):
                yield Hit(place, f"--router-tokenizer-path is {given.value}, which lies under no volume", router)


def _is_outside(router: Subject, path: str) -> bool:
    return path.startswith("/") and router.template is not None and volume_at(router, path) is None


def _transports(scene: Scene) -> Iterator[Hit]:
    for routers, engines in groups(scene):
        for name, default in _AGREED.items():
            for router in routers[:1]:
                wanted = _given(router, name, default)
                for engine in engines:
                    got = _given(engine, name, default)
                    if wanted is not None and got is not None and got != wanted:
                        message = f"{name} is {wanted} on the server and {got} on {engine.role}"
                        yield Hit(value(engine, f"argument {name}").place or engine.place(), message, engine)


def _given(subject: Subject, name: str, default: str) -> str | None:
    found = value(subject, f"argument {name}")
    if found.state == "unknown":
        return None
    return str(found.value) if found.is_known else default


def _late_fields(scene: Scene) -> Iterator[Hit]:
    for pod in scene.pods:
        template = pod.template
        if template is not None and template.kind == "InferaDeployment":
            for container in (*template.containers, *template.init_containers):
                yield from _late_in(pod, container)


def _late_in(pod: Subject, container: Container) -> Iterator[Hit]:
    before: set[str] = set()
    for variable in container.env:
        for name in _OWN_FIELDS:
            if variable.value is not None and f"$({name})" in variable.value and name not in before:
                message = f"{variable.name} uses $({name}), which is not declared before it"
                yield Hit(pod.place(variable.path), message, pod)
        before.add(variable.name)


def _namespaces(scene: Scene) -> Iterator[Hit]:
    """Yield a namespace that is not the site's, or where the site says none, for information, not the recipes'."""
    stated = scene.site.get("namespace")
    for document in infera_documents(scene):
        own = value(document, "document metadata.namespace")
        wanted = stated or "infera"
        if own.value != wanted:
            message = f"namespace is {own.shown()}, not {wanted}" + (
                " as the site says" if stated else ", as in the recipes"
            )
            severity = None if stated is not None and own.is_known else "info"
            yield Hit(own.place or document.place(), message, document, severity)


def _not_text(scene: Scene) -> Iterator[Hit]:
    for pod in scene.pods:
        for fault in () if pod.template is None else pod.template.faults:
            if fault.code == "wrong_type" and re.search(
                r"\.(?:env\[\d+\]\.value|command\[\d+\]|args\[\d+\])$", fault.path
            ):
                yield Hit(pod.place(fault.path), f"{fault.got} is not text; put it in quotes", pod)
    for document in infera_documents(scene):
        for name, service in services(document).items():
            for index, variable in enumerate(listed(mapping(service).get("env"))):
                given = mapping(variable).get("value")
                if given is not None and not isinstance(given, str):
                    steps = ("spec", "services", name, "env", index, "value")
                    yield Hit(place_of(document, *steps), f"{given} is not text; put it in quotes", document)


RULES: Mapping[str, Rule] = {
    "R-NS-001": _namespaces,
    "R-OPR-002": _ignored,
    "R-OPR-003": _quantities,
    "R-OPR-004": _names,
    "R-OPR-005": _keys,
    "R-OPR-010": _late_fields,
    "R-OPR-014": _pools,
    "R-OPR-015": _no_server,
    "R-OPR-016": _tokenizers,
    "R-ARG-014": _transports,
    "R-ENV-021": _not_text,
}
"""Fact id → rule."""
