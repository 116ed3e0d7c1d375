"""Put a directory's files together: labelled manifests, kustomization, guide, and the manifest set that lists them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from moeplan.digest import digest_bytes
from moeplan.errors import Issue, PluginError
from moeplan.model.manifest_set import SET_NAME, ManifestSet, ManifestSetFile
from moeplan.model.plan import Plan
from moeplan.model.plugin import Profile
from moeplan.model.rendering import RenderedFile, Rendering
from moeplan.model.site import Site
from moeplan.rendering.guide import Origin, write_guide
from moeplan.rendering.labels import label, recommended_labels
from moeplan.rendering.scrutiny import images_of, script_images, scrutinise
from moeplan.version import GENERATOR
from moeplan.wire.converter import unstructure
from moeplan.wire.documents import dump_document, identify

__all__ = ["RenderedSet", "RenderedWith", "assemble"]

_KUSTOMIZATION = "kustomization.yaml"
_GUIDE = "README.md"


@attrs.frozen
class RenderedWith:
    """Who rendered: plugin ``name@version``, engine, profile, and what the user accepted."""

    plugin: str
    engine: str
    profile: Profile
    accepted: tuple[str, ...] = ()


@attrs.frozen
class RenderedSet:
    """A directory that can be written: every file's bytes by name, the manifest set's own among them."""

    manifest_set: ManifestSet
    files: dict[str, bytes]


def assemble(plan: Plan, site: Site, rendering: Rendering, made_with: RenderedWith) -> RenderedSet:
    """Return the files of a rendering with what the core adds; nothing of the plugin's is believed.

    Args:
        plan: what is deployed.
        site: where.
        rendering: as the plugin gave it.
        made_with: who rendered it.

    Raises:
        InputError: a value of the site is no value.
        PluginError: the rendering is at fault; every fault of every file.
    """
    objects = scrutinise(rendering, unstructure(site), made_with.plugin)
    shared = recommended_labels(plan, made_with.profile.id)
    files = [(file.name, file.form, _text(file, objects, shared, made_with.plugin)) for file in rendering.files]
    manifests = [name for name, form, _ in files if form == "manifest" and not _runs_once(objects[name])]
    if manifests:
        files.append((_KUSTOMIZATION, "kustomization", _kustomization(manifests)))
    origin = Origin(
        identify(plan), identify(site), made_with.plugin, made_with.profile, _images(rendering.files, objects)
    )
    removed = [name for name, form, _ in files if form == "manifest" and not _holds_namespace(objects[name])]
    guide = write_guide(plan, site, origin, [_listed(*file) for file in files], rendering.guide, removed)
    files.append((_GUIDE, "guide", guide))
    made = _manifest_set(origin, made_with, sorted(files))
    return RenderedSet(made, {name: text.encode("utf-8") for name, _, text in files} | {SET_NAME: dump_document(made)})


def _text(file: RenderedFile, objects: dict[str, list[Any]], shared: dict[str, str], plugin: str) -> str:
    """Return a file's text; a manifest's is written anew with its labels, and reads back as what was written."""
    from moeplan.manifests.write import dump_documents

    if file.form != "manifest":
        return file.text if file.text.endswith("\n") else file.text + "\n"
    wanted = [label(value, shared) for value in objects[file.name]]
    text = dump_documents(wanted)
    if _read_back(text) != wanted:
        where = f"plugin {plugin}: {file.name}"
        raise PluginError(Issue(where, "not_read_back", "a manifest that does not read back", "values that YAML holds"))
    return text


def _read_back(text: str) -> list[Any]:
    from moeplan.manifests.yaml_positions import load_manifests

    return [document.value for document in load_manifests(text.encode("utf-8")).documents]


def _runs_once(objects: Sequence[Any]) -> bool:
    """Return whether a file is all Jobs: they are run by hand, in their turn, and cannot be applied a second time."""
    return all(value["kind"] == "Job" for value in objects)


def _holds_namespace(objects: Sequence[Any]) -> bool:
    return any(value["kind"] == "Namespace" for value in objects)


def _kustomization(manifests: Sequence[str]) -> str:
    from moeplan.manifests.write import dump_yaml

    head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    return dump_yaml(head | {"resources": list(manifests)})


def _images(files: Sequence[RenderedFile], objects: dict[str, list[Any]]) -> tuple[str, ...]:
    found = set(images_of(list(objects.values())))
    for file in files:
        if file.form == "script":
            found.update(script_images(file.text))
    return tuple(sorted(found))


def _listed(name: str, form: str, text: str) -> ManifestSetFile:
    data = text.encode("utf-8")
    return ManifestSetFile(name, form, len(data), digest_bytes(data))


def _manifest_set(origin: Origin, made_with: RenderedWith, files: Sequence[tuple[str, str, str]]) -> ManifestSet:
    return ManifestSet(
        generator=GENERATOR,
        plan=origin.plan,
        site=origin.site,
        plugin=made_with.plugin,
        engine=made_with.engine,
        profile=made_with.profile.id,
        status=made_with.profile.status,
        accepted=tuple(sorted(set(made_with.accepted))),
        images=origin.images,
        files=tuple(_listed(*file) for file in files),
    )
