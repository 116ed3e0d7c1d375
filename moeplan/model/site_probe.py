"""What looking at the nodes and the cluster found: each look with how it was done, and the values for the site."""

from __future__ import annotations

import attrs

from moeplan.model.fields import boolean, choice, const, identifier, instant, integer, nested, sequence, text
from moeplan.model.site import SiteKubernetes, SiteNode, SiteStorage

__all__ = ["OUTCOMES", "Look", "NodeProbe", "ProbedDirectory", "SiteProbe"]

OUTCOMES = ("found", "not_found", "failed", "timed_out")


@attrs.frozen(kw_only=True)
class Look:
    """One look: what for, at what, how, how long it took, and what was found or why nothing was."""

    what: str = identifier()
    subject: str | None = text(max_length=1024, optional=True)
    how: str = text(max_length=1024)
    milliseconds: int = integer()
    outcome: str = choice(*OUTCOMES)
    found: str | None = text(max_length=4096, optional=True)
    why: str | None = text(max_length=1024, optional=True)


@attrs.frozen(kw_only=True)
class ProbedDirectory:
    """A directory that was asked for, with the file system it lies on and what makes that less than certain."""

    path: str = text(pattern=r"^/[^\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]*$", max_length=1024)
    exists: bool = boolean()
    storage: SiteStorage | None = nested(SiteStorage, optional=True)
    total_bytes: int | None = integer(optional=True)
    free_bytes: int | None = integer(optional=True)
    caveats: tuple[str, ...] = text(many=True, max_length=1024)


@attrs.frozen(kw_only=True)
class NodeProbe:
    """One node: the values for its place in the site, the directories, and every look."""

    values: SiteNode = nested(SiteNode)
    directories: tuple[ProbedDirectory, ...] = sequence(ProbedDirectory)
    looks: tuple[Look, ...] = sequence(Look)


@attrs.frozen(kw_only=True)
class SiteProbe:
    """What a probe found; ``moeplan site merge`` takes it into a site."""

    kind: str = const("site_probe")
    schema_version: str = const("1.0.0")
    at: str = instant()
    nodes: tuple[NodeProbe, ...] = sequence(NodeProbe)
    kubernetes: SiteKubernetes | None = nested(SiteKubernetes, optional=True)
    looks: tuple[Look, ...] = sequence(Look)
