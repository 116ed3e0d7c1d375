"""What was rendered: every file by digest, and the plan and the site that it came from."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from moeplan.errors import Issue, escape
from moeplan.model.fields import PLUGIN_PATTERN, choice, const, digest, integer, sequence, text
from moeplan.model.plan import GENERATOR_PATTERN, RUNTIME_PATTERN
from moeplan.model.plugin import PROFILE_PATTERN, PROFILE_STATUSES
from moeplan.model.rendering import FILE_PATTERN
from moeplan.model.site import IMAGE_PATTERN

__all__ = ["FORMS", "SET_NAME", "ManifestSet", "ManifestSetFile"]

FORMS = ("manifest", "script", "text", "kustomization", "guide")
SET_NAME = "manifest-set.json"
"""The file that holds the document itself; it lists every other file of its directory."""


@attrs.frozen
class ManifestSetFile:
    """One file: ``digest`` and ``size`` in bytes are of the file as it lies."""

    name: str = text(pattern=FILE_PATTERN, max_length=128)
    form: str = choice(*FORMS)
    size: int = integer()
    digest: str = digest()


@attrs.frozen
class ManifestSet:
    """Rendered files, by name, with what made them.

    Attributes:
        plan: identity of the plan.
        site: identity of the site.
        plugin: name and version of the plugin that rendered, joined by ``@``.
        engine: the runtime's engine.
        profile: the profile's id.
        status: how much was known of the profile.
        accepted: what the user accepted against a warning of the registry of profiles.
        images: every image that the files run, each once.
        files: every file but this document's own.
    """

    kind: str = const("manifest_set")
    schema_version: str = const("1.0.0")
    generator: str = text(pattern=GENERATOR_PATTERN, max_length=64)
    plan: str = digest()
    site: str = digest()
    plugin: str = text(pattern=PLUGIN_PATTERN.removesuffix("$") + r"@[a-z0-9][a-z0-9._+-]{0,62}$", max_length=128)
    engine: str = text(pattern=RUNTIME_PATTERN, max_length=64)
    profile: str = text(pattern=PROFILE_PATTERN, max_length=129)
    status: str = choice(*PROFILE_STATUSES)
    accepted: tuple[str, ...] = text(pattern=PROFILE_PATTERN, max_length=129, many=True)
    images: tuple[str, ...] = text(pattern=IMAGE_PATTERN, max_length=1024, many=True)
    files: tuple[ManifestSetFile, ...] = sequence(ManifestSetFile, min_items=1)

    def faults(self) -> Iterator[Issue]:
        """Yield what no single field shows: order, repeats, names that collide, a file that is the document itself."""
        names = [file.name for file in self.files]
        for key, values in (("files", names), ("images", list(self.images)), ("accepted", list(self.accepted))):
            if values != sorted(set(values)):
                yield Issue(
                    f"$.{key}", "not_sorted", f"{key} out of order or repeated", "each once, in code point order"
                )
        if len({name.casefold() for name in names}) != len(set(names)):
            yield Issue("$.files", "paths_collide", "names that differ only in case", "names that differ in more")
        for index, name in enumerate(names):
            if name.casefold() == SET_NAME:
                told = "the document lists itself"
                yield Issue(f"$.files[{index}].name", "lists_itself", told, "any other file", escape(name, 80))
