"""What a plugin renders for a plan and a site: files, and the operator's guide as data."""

from __future__ import annotations

import attrs

from moeplan.model.fields import choice, integer, sequence, text

__all__ = [
    "FILE_PATTERN",
    "MAX_FILE_CHARACTERS",
    "GuideStep",
    "LintRequest",
    "ManifestSource",
    "RenderedFile",
    "Rendering",
]

FILE_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
"""A rendered file's plain name; there are no folders."""
MAX_FILE_CHARACTERS = 8 << 20
_BODY = r"^[^\u0000]*$"


@attrs.frozen
class ManifestSource:
    """One file (or standard input, named ``-``) with manifests or a launch script, as it was read.

    ``documents`` are the numbers of its objects, counted from 0 as :func:`load_manifests` lists them, that are the
    plugin's to judge; None where the text is a launch script.
    """

    name: str = text(max_length=4096)
    text: str = text(pattern=_BODY, min_length=0, max_length=MAX_FILE_CHARACTERS)
    documents: tuple[int, ...] | None = integer(many=True, optional=True, default=None)


@attrs.frozen
class LintRequest:
    """What is to be linted together: all sources that are a plugin's, and the profile where the user names one."""

    sources: tuple[ManifestSource, ...] = sequence(ManifestSource, min_items=1)
    profile: str | None = text(max_length=129, optional=True, default=None)


@attrs.frozen
class RenderedFile:
    """One file to write: ``manifest`` is YAML for ``kubectl apply``, ``script`` is run by a shell, ``text`` is read."""

    name: str = text(pattern=FILE_PATTERN, max_length=128)
    form: str = choice("manifest", "script", "text")
    text: str = text(pattern=_BODY, max_length=MAX_FILE_CHARACTERS)


@attrs.frozen
class GuideStep:
    """One step of the operator's guide.

    ``part`` is where it stands: before anything (``prerequisite``), in the order of deployment (``deploy``), the first
    request (``smoke``), or what proves that a feature really works (``proof``). ``deadline_seconds`` is after how long
    without an answer the step has failed; None where nothing waits.
    """

    part: str = choice("prerequisite", "deploy", "smoke", "proof")
    title: str = text(max_length=200)
    statement: str = text(pattern=_BODY, max_length=4096)
    commands: tuple[str, ...] = text(pattern=_BODY, max_length=8192, many=True, default=())
    deadline_seconds: int | None = integer(ge=1, optional=True, default=None)


@attrs.frozen
class Rendering:
    """Everything a plugin renders: files in the order they are applied, and the guide."""

    files: tuple[RenderedFile, ...] = sequence(RenderedFile, min_items=1)
    guide: tuple[GuideStep, ...] = sequence(GuideStep, default=())
