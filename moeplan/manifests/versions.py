"""Engine versions: ranges as data, and what an image reference tells of the version inside. "Not known" is an answer.

The order is that of PEP 440, through ``packaging``: engines are Python distributions, and pre-releases, post-releases
and local builds in their versions are more than a few lines of one's own would get right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from operator import eq, ge, gt, le, lt, ne

import attrs
from packaging.version import InvalidVersion, Version

from moeplan.errors import InputError, Issue, escape

__all__ = ["EngineImage", "VersionRange", "parse_image", "parse_range", "parse_version"]

_OPERATORS: dict[str, Callable[[Version, Version], bool]] = {">=": ge, "<=": le, "==": eq, "!=": ne, ">": gt, "<": lt}
_CLAUSE = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*([0-9][0-9A-Za-z.]{0,60})\s*", re.ASCII)
_TAG = re.compile(
    r"v?(?P<version>[0-9]+\.[0-9]+(?:\.[0-9]+){0,2}(?:rc[0-9]+|\.post[0-9]+|\.dev[0-9]+)*)(?:-.*)?", re.ASCII
)
_REFERENCE = re.compile(
    r"(?P<repository>(?:[^/@\s]+/)*[^/:@\s]+)(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?"
    r"(?:@(?P<digest>[a-z0-9+._-]+:[0-9a-f]{32,128}))?",
    re.ASCII,
)


@attrs.frozen
class VersionRange:
    """A conjunction of comparisons, such as ``>=0.11,<0.20``; the empty one holds every known version."""

    text: str
    clauses: tuple[tuple[str, Version], ...]

    def contains(self, version: Version | None) -> bool | None:
        """Return whether ``version`` lies in the range; None where that is not known.

        Not known: no version, and a pre-release of a bound, which may or may not hold what the bound brought. The
        local part (``+cu129``) says how a version was built and is left out of the comparison.
        """
        if version is None:
            return None
        public = Version(version.public)
        results = [_holds(operator, public, bound) for operator, bound in self.clauses]
        if False in results:
            return False
        return None if None in results else True


def _holds(operator: str, version: Version, bound: Version) -> bool | None:
    if version.is_prerelease and not bound.is_prerelease and Version(version.base_version) == bound:
        return None
    return _OPERATORS[operator](version, bound)


def parse_range(text: str, path: str = "$") -> VersionRange:
    """Return the range in ``text``: comparisons joined by commas, or nothing.

    Raises:
        InputError: no such range.
    """
    clauses = []
    for part in text.split(",") if text.strip() else ():
        match = _CLAUSE.fullmatch(part)
        version = parse_version(match[2]) if match is not None else None
        if match is None or version is None:
            expected = "comparisons such as >=0.11,<0.20"
            raise InputError(Issue(path, "invalid_range", "no version range", expected, escape(text, 60)))
        clauses.append((match[1], version))
    return VersionRange(text, tuple(clauses))


def parse_version(text: str | None) -> Version | None:
    """Return the version in ``text`` (a leading ``v`` is dropped), or None where it tells none.

    ``0.1.dev…`` tells none: it is what a build says that was made without the repository's tags.
    """
    if text is None or len(text) > 128:
        return None
    try:
        version = Version(text)
    except (InvalidVersion, ValueError):
        return None
    return None if version.is_devrelease and version.release == (0, 1) else version


@attrs.frozen
class EngineImage:
    """An image reference taken apart.

    Attributes:
        repository: registry and name.
        tag: the tag, or None.
        digest: the digest, or None; it says nothing about versions.
        version: the engine's version, or None where the reference does not tell it.
    """

    repository: str
    tag: str | None
    digest: str | None
    version: Version | None


def parse_image(reference: str, versioned: Collection[str] = (), path: str = "$") -> EngineImage:
    """Return an image reference taken apart.

    Args:
        reference: such as ``vllm/vllm-openai:v0.20.2@sha256:…``.
        versioned: repositories whose tags are engine versions; mirrors of them under any registry count too. Tags of
            all others are their publishers' own (``1.1.0-mi355x``, ``rocm7_…``) and tell no engine version.
        path: the JSON path, for messages.

    Raises:
        InputError: no image reference.
    """
    match = _REFERENCE.fullmatch(reference) if len(reference) <= 4096 else None
    if match is None:
        raise InputError(Issue(path, "invalid_image", "no image reference", "name:tag@digest", escape(reference, 80)))
    repository, tag = match["repository"], match["tag"]
    known = any(repository == name or repository.endswith("/" + name) for name in versioned)
    shape = _TAG.fullmatch(tag) if known and tag is not None else None
    return EngineImage(repository, tag, match["digest"], parse_version(shape["version"]) if shape is not None else None)
