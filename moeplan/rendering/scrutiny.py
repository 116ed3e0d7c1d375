"""What no rendered file may hold, whoever rendered it: placeholders, empty values, images by tag, another namespace."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from moeplan.errors import InputError, Issue, PluginError, escape
from moeplan.model.rendering import GuideStep, RenderedFile, Rendering
from moeplan.model.site import IMAGE_PATTERN
from moeplan.wire.strict_json import child

__all__ = ["RESERVED", "images_of", "objects_of", "script_images", "scrutinise"]

RESERVED = ("kustomization.yaml", "readme.md", "manifest-set.json")
"""Names, in small letters, that the core writes itself."""

_IMAGE = re.compile(IMAGE_PATTERN.removeprefix("^").removesuffix("$"))
_EVERYWHERE = r"<[A-Z][A-Z0-9_-]*>|\b(?:TODO|FIXME|CHANGE_?ME|REPLACE_?ME)\b"
_IN_MANIFESTS = re.compile(_EVERYWHERE + r"|\{\{|\$\{[A-Za-z_]")
_IN_SCRIPTS = re.compile(_EVERYWHERE + r"|\{\{")
_IN_COMMANDS = re.compile(_EVERYWHERE)
_REWRITTEN = re.compile(r"\$[($]")
_MAY_BE_EMPTY = frozenset(("value", "apiGroup", "storageClassName", "volumeName"))
"""Keys of which an empty text says something: an environment variable's value, the core API group, no class."""
_FREE_TEXT = frozenset(("annotations", "labels", "data", "matchLabels"))
_ENDINGS = {"manifest": (".yaml",), "script": (".sh",), "text": (".txt", ".md", ".json")}


def scrutinise(rendering: Rendering, site: Mapping[str, Any], plugin: str) -> dict[str, list[Any]]:
    """Return the objects of each manifest by file name, or refuse the rendering.

    Args:
        rendering: as the plugin gave it.
        site: the site as JSON values.
        plugin: the plugin's name, for messages.

    Raises:
        InputError: the cause is a value of the site, which the path names.
        PluginError: the cause is the plugin; every fault of every file.
    """
    issues: list[Issue] = []
    objects: dict[str, list[Any]] = {}
    for file in rendering.files:
        issues += _name_faults(file)
        if file.form == "manifest":
            objects[file.name], faults = objects_of(file)
            issues += faults
            for number, value in enumerate(objects[file.name]):
                issues += (issue.under(f"{file.name}[{number}]") for issue in _object_faults(value, site))
        else:
            issues += _text_faults(file)
    expanded = tuple(_expanded(objects, site))
    if expanded:
        raise InputError(*expanded, source="site")
    issues += _repeats(objects)
    issues += (issue for step in rendering.guide for issue in _step_faults(step))
    if issues:
        raise _error(issues, site, plugin)
    return objects


def objects_of(file: RenderedFile) -> tuple[list[Any], list[Issue]]:
    """Return the objects of a manifest and what is wrong with its YAML."""
    from moeplan.manifests.yaml_positions import load_manifests

    try:
        read = load_manifests(file.text.encode("utf-8"))
    except InputError as error:
        return [], [issue.under(file.name) for issue in error.issues]
    faults = [issue.under(file.name) for issue in read.faults]
    if not read.documents:
        faults.append(Issue(file.name, "no_object", "a manifest without an object", "at least one object"))
    return [document.value for document in read.documents], faults


def images_of(objects: Any) -> Iterator[str]:
    """Yield every image that is named anywhere in plain values, in order, as often as it is there."""
    for key, value, _path in _walk(objects, "$"):
        if (image := _image(key, value)) is not None:
            yield image


def _image(key: Any, value: Any) -> str | None:
    """Return the image that a key names: a container's, or an image volume's reference."""
    if key != "image":
        return None
    named = value.get("reference") if isinstance(value, dict) else value
    return named if isinstance(named, str) else None


def script_images(text: str) -> Iterator[str]:
    """Yield the images that ``docker run`` lines of a script start."""
    from moeplan.manifests.commands import commands_of_script
    from moeplan.manifests.docker_run import read_docker_run

    for command in commands_of_script(text):
        started = read_docker_run(command)
        if started is not None and started.container.image is not None:
            yield started.container.image


def _name_faults(file: RenderedFile) -> Iterator[Issue]:
    if file.name.casefold() in RESERVED:
        yield Issue(file.name, "reserved_name", "a name that the core writes itself", "another name")
    elif not file.name.endswith(_ENDINGS[file.form]):
        yield Issue(file.name, "wrong_ending", f"a {file.form} with another ending", " or ".join(_ENDINGS[file.form]))


def _object_faults(value: Any, site: Mapping[str, Any]) -> Iterator[Issue]:
    metadata = value.get("metadata") if isinstance(value, dict) else None
    words = [value.get("apiVersion"), value.get("kind")] if isinstance(value, dict) else []
    if not isinstance(metadata, dict) or not all(isinstance(w, str) for w in (*words, metadata.get("name"))):
        yield Issue("$", "not_an_object", "no Kubernetes object", "apiVersion, kind and metadata.name")
        return
    if not isinstance(metadata.get("labels", {}), dict):
        yield Issue("$.metadata.labels", "not_an_object", "labels that are no mapping", "a mapping of text to text")
    yield from _namespace_faults(value, site.get("namespace"))
    for key, item, path in _walk(value, "$"):
        if isinstance(key, str) and (found := _IN_MANIFESTS.search(key)):
            yield _placeholder(path, found[0])
        if isinstance(item, str) and (found := _IN_MANIFESTS.search(item)):
            yield _placeholder(path, found[0])
        if item is None or (item == "" and isinstance(key, str) and not _may_be_empty(key, path)):
            yield Issue(path, "empty_value", "a value that is empty", "a value, or no such key")
        if (image := _image(key, item)) is not None:
            yield from _image_faults(path, image)


def _expanded(objects: Mapping[str, list[Any]], site: Mapping[str, Any]) -> Iterator[Issue]:
    """Yield the site's values that Kubernetes would rewrite where they stand in a command or a variable.

    Source: Kubernetes documentation, "Define Dependent Environment Variables": ``$(NAME)`` is replaced, ``$$`` is ``$``
    """
    found = [(path, value) for _, value, path in _walk(dict(site), "$") if isinstance(value, str) and "$" in value]
    texts = [
        text
        for values in objects.values()
        for _, text, path in _walk(values, "$")
        if found and isinstance(text, str) and any(part in path for part in (".command[", ".args[", ".env["))
    ]
    for path, value in found:
        if _REWRITTEN.search(value) is not None and any(value in text for text in texts):
            told = "Kubernetes would rewrite this in a command"
            yield Issue(
                path, "expanded_value", told, "a value without $( and $$", escape(value, 200), "choose another name"
            )


def _may_be_empty(key: str, path: str) -> bool:
    return key in _MAY_BE_EMPTY or any(f".{name}" in path for name in _FREE_TEXT)


def _image_faults(path: str, image: str) -> Iterator[Issue]:
    if _IMAGE.fullmatch(image) is None:
        expected = "a reference that ends in @sha256: and 64 hex digits"
        yield Issue(path, "image_without_digest", "an image that is not named by digest", expected, escape(image, 200))


def _namespace_faults(value: dict[str, Any], namespace: str | None) -> Iterator[Issue]:
    metadata = value["metadata"]
    got = metadata["name"] if value["kind"] == "Namespace" else metadata.get("namespace")
    if namespace is not None and got is not None and got != namespace:
        told = "an object in another namespace than the site's"
        yield Issue("$.metadata.namespace", "other_namespace", told, escape(namespace, 63), escape(str(got), 63))


def _repeats(objects: Mapping[str, list[Any]]) -> Iterator[Issue]:
    seen: set[tuple[str, str, str, str]] = set()
    for name, values in objects.items():
        for number, value in enumerate(values):
            metadata = value.get("metadata") if isinstance(value, dict) else None
            if isinstance(metadata, dict):
                words = (value.get("apiVersion"), value.get("kind"), metadata.get("namespace"), metadata.get("name"))
                key = tuple(map(str, words))
                if key in seen:
                    told = "an object that is there already"
                    yield Issue(f"{name}[{number}]", "repeated_object", told, "each once", escape("/".join(key), 200))
                seen.add(key)  # type: ignore[arg-type]


def _text_faults(file: RenderedFile) -> Iterator[Issue]:
    if found := _IN_SCRIPTS.search(file.text):
        yield _placeholder(f"{file.name}: line {file.text.count(chr(10), 0, found.start()) + 1}", found[0])
    if file.form == "script":
        for image in script_images(file.text):
            yield from _image_faults(file.name, image)


def _step_faults(step: GuideStep) -> Iterator[Issue]:
    where = f"guide step {escape(step.title, 80)!r}"
    for line in (step.title, step.statement, *step.commands):
        if found := _IN_COMMANDS.search(line):
            yield _placeholder(where, found[0])
    if step.commands and step.deadline_seconds is None and step.part != "prerequisite":
        yield Issue(where, "no_deadline", "a step with commands and without a deadline", "deadlineSeconds")


def _placeholder(path: str, found: str) -> Issue:
    return Issue(path, "placeholder", "a placeholder is left", "the value itself", escape(found, 80))


def _walk(value: Any, path: str, key: Any = None) -> Iterator[tuple[Any, Any, str]]:
    """Yield key (None of a list's item), value and path of everything in plain values, from the top."""
    yield key, value, path
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _walk(item, child(path, name), name)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _walk(item, f"{path}[{index}]")


def _error(issues: list[Issue], site: Mapping[str, Any], plugin: str) -> InputError | PluginError:
    """Return the error; a placeholder that stands in a value of the site is the site's fault, which is named."""
    left = {issue.got for issue in issues if issue.code == "placeholder"}
    causes = [
        Issue(path, "placeholder", "a placeholder is left", "the value itself", found[0], "fill it in")
        for _key, value, path in _walk(dict(site), "$")
        if isinstance(value, str) and (found := _IN_MANIFESTS.search(value)) and found[0] in left
    ]
    if causes:
        return InputError(*causes, source="site")
    step = "report it to the plugin's author"
    told = (Issue(f"plugin {plugin}: {i.path}", i.code, i.message, i.expected, i.got, i.next or step) for i in issues)
    return PluginError(*told)
