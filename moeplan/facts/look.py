"""Look-ups: what each space of fields means for a launch."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from moeplan.errors import InputError
from moeplan.facts.config_maps import given_by_config_map, taken_from_config_maps
from moeplan.facts.derived import DERIVED
from moeplan.facts.fields import Field, follow, steps_of
from moeplan.facts.values import Value, absent, known, unknown
from moeplan.manifests.arguments import Argument
from moeplan.manifests.commands import Word
from moeplan.manifests.environment import resolve_environment
from moeplan.manifests.versions import EngineImage, parse_image, parse_version
from moeplan.wire.strict_json import child

if TYPE_CHECKING:
    from moeplan.facts.launches import Subject

__all__ = ["look"]


def look(subject: Subject, field: Field) -> Value:
    """Return what ``field`` holds for ``subject``."""
    return _SPACES[field.space](subject, field)


def _argument(subject: Subject, field: Field) -> Value:
    given = subject.arguments.all(field.name)
    if not given:
        return unknown(subject.place()) if subject.open_ended else absent(subject.place())
    last = given[-1]
    place = subject.place(word=last.words[0])
    if last.problem is not None or any(one.unresolved for one in _holding(given)):
        return unknown(place)
    value = subject.arguments.json(field.name) if last.kind == "json" else last.value
    if isinstance(value, tuple):
        value = list(value)
    if last.kind != "json" or not field.steps:
        return known(value, place) if value is not None else unknown(place)
    return known(follow(value, field.steps)[0], place)


def _holding(given: tuple[Argument, ...]) -> tuple[Argument, ...]:
    """Return the arguments that make up the value: all dotted ones, or the last whole one."""
    dotted = tuple(one for one in given if one.keys)
    return dotted or given[-1:]


def _environment(subject: Subject, field: Field) -> Value:
    name = field.name
    if subject.command is not None and name in subject.command.environment:
        text, place = subject.command.environment[name], subject.place(word=_setting(subject, name))
        return unknown(place) if text is None else known(text, place)
    if subject.container is None:
        return absent(subject.place())
    variable = subject.container.variable(name)
    if variable is None and subject.container.env_from:
        return taken_from_config_maps(subject, name, child(subject.container.path, "envFrom"))
    if variable is None:
        return absent(subject.place(child(subject.container.path, "env")))
    if variable.source == "configMapKeyRef":
        return given_by_config_map(subject, name, variable.path)
    place = subject.place(variable.path)
    value = resolve_environment(subject.container.env).get(name)
    return unknown(place) if value is None or value.unresolved else known(value.text, place)


def _setting(subject: Subject, name: str) -> Word | None:
    """Return the last word of a launch's script, before the launch or at its end, that sets a variable."""
    first = None if subject.command is None or not subject.command.words else subject.command.words[0]
    if first is None or first.offset is None:
        return first
    script = subject.source.text
    if subject.document is not None:
        script = follow(subject.document.value, steps_of(first.path.removeprefix("$")))[0]
    found = list(re.finditer(rf"(?<![\w$]){re.escape(name)}=", script)) if isinstance(script, str) else []
    before = [match.start() for match in found if match.start() < first.offset]
    if not before:
        return first
    return Word(f"{name}=", first.path, before[-1], script.count("\n", 0, before[-1]))


def _image_part(reference: str | None, part: str, path: str, subject: Subject) -> Value:
    place = subject.place(path)
    if reference is None:
        return absent(place)
    try:
        image = parse_image(reference)
    except InputError:
        return unknown(place)
    return known({"reference": reference, **_parts(image)}.get(part or "reference"), place)


def _parts(image: EngineImage) -> dict[str, str | None]:
    return {"repository": image.repository, "tag": image.tag, "digest": image.digest}


def _image(subject: Subject, field: Field) -> Value:
    container = subject.container
    if container is None:
        return absent(subject.place())
    return _image_part(container.image, field.name, child(container.path, "image"), subject)


def _init_image(subject: Subject, field: Field) -> Value:
    for container in subject.template.init_containers if subject.template is not None else ():
        if container.name == field.name:
            part = str(field.steps[0]) if field.steps else ""
            return _image_part(container.image, part, child(container.path, "image"), subject)
    return absent(subject.place())


def _below(root: Callable[[Subject], tuple[Any, str] | None]) -> Callable[[Subject, Field], Value]:
    def below(subject: Subject, field: Field) -> Value:
        found = root(subject)
        if found is None:
            return absent(subject.place())
        value, path = found
        value, taken = follow(value, field.steps)
        for step in taken:
            path = child(path, step)
        return known(value, subject.place(path))

    return below


def _mount(subject: Subject, field: Field) -> Value:
    container, template = subject.container, subject.template
    if container is None:
        return absent(subject.place())
    wanted = field.name.rstrip("/") or "/"
    for mount in container.mounts:
        if (mount.mount_path.rstrip("/") or "/") == wanted:
            volume = None if template is None else template.volume(mount.volume)
            value = {
                "volume": mount.volume,
                "kind": None if volume is None else volume.source_kind,
                "source": None if volume is None else volume.source,
                "readOnly": mount.read_only,
                "subPath": mount.sub_path,
            }
            return known(follow(value, field.steps)[0], subject.place(mount.path))
    return absent(subject.place(child(container.path, "volumeMounts")))


def _resource(subject: Subject, field: Field) -> Value:
    container = subject.container
    if container is None:
        return absent(subject.place())
    path = child(container.path, "resources")
    for key, listed in (("limits", container.limits), ("requests", container.requests)):
        if field.name in listed:
            return known(listed[field.name], subject.place(child(child(path, key), field.name)))
    return absent(subject.place(path))


def _site(subject: Subject, field: Field) -> Value:
    return known(follow(subject.scene.site, field.steps)[0], subject.place())


def _model(subject: Subject, field: Field) -> Value:
    given = subject.arguments.last("--model")
    place = subject.place(word=given.words[0]) if given is not None else subject.place()
    if subject.model is None:
        return unknown(place)
    value = follow(subject.model.get(field.name), field.steps)[0]
    return unknown(place) if value is None else known(value, place)


def _launch(subject: Subject, field: Field) -> Value:
    place = subject.place()
    if field.name == "version":
        return _version(subject)
    if field.name == "model":
        reference = subject.model_reference
        return known(reference, place) if reference is not None else unknown(place)
    plain: Mapping[str, Any] = {
        "role": subject.role or None,
        "program": None if subject.program is None else subject.program.name,
        "kind": subject.kind,
        "profile": subject.scene.profile,
        "positional": [word.text for word in subject.arguments.positional] or None,
    }
    return known(plain.get(field.name), place)


def _version(subject: Subject) -> Value:
    """Return the engine's version: what the image's tag tells, or else the site."""
    image = None if subject.container is None else subject.container.image
    if image is not None:
        try:
            told = parse_image(image, subject.scene.knowledge.versioned).version
        except InputError:
            told = None
        if told is not None:
            return known(str(told), subject.place())
    stated = subject.scene.site.get("engineVersion")
    version = parse_version(stated) if isinstance(stated, str) else None
    return unknown(subject.place()) if version is None else known(str(version), subject.place())


def _derived(subject: Subject, field: Field) -> Value:
    function = subject.scene.knowledge.derived.get(field.name) or DERIVED.get(field.name)
    return unknown(subject.place()) if function is None else function(subject)


_SPACES: dict[str, Callable[[Subject, Field], Value]] = {
    "argument": _argument,
    "environment": _environment,
    "image": _image,
    "init-image": _init_image,
    "pod": _below(lambda s: None if s.template is None else (s.template.spec, s.template.path)),
    "container": _below(lambda s: None if s.container is None else (s.container.spec, s.container.path)),
    "owner": _below(lambda s: None if s.template is None else (s.template.owner, s.template.owner_path)),
    "document": _below(lambda s: None if s.document is None else (s.document.value, "$")),
    "mount": _mount,
    "resource": _resource,
    "site": _site,
    "model": _model,
    "launch": _launch,
    "derived": _derived,
}
