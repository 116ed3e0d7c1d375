"""The commented site file that a person fills in: every value a profile needs, what it is and how to find it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Any

from moeplan.manifests.write import dump_yaml
from moeplan.model.plugin import Profile, SiteNeed
from moeplan.model.site import Site
from moeplan.site.needs import NODES, check_needs, node_roles, read_default, with_core_needs
from moeplan.wire.schemas import SCHEMA_BASE, head_of, schema_name

__all__ = ["REQUIRED", "site_template"]

REQUIRED = "required"
"""The comment after a null that has to be filled in."""
_WIDTH = 110

Tree = dict[str, Any]
"""Needs by the steps of their keys: a need, or a tree of them."""


def site_template(plugin: str, profile: Profile, schema: str | None = None) -> str:
    """Return the site file for a profile: YAML with comments, the same for the same profile.

    Args:
        plugin: the plugin's name.
        profile: the profile with its needs.
        schema: what the first line points an editor at; None points at the schema's id.

    Raises:
        PluginError: a need of the plugin is none that a site can meet.
    """
    needs = with_core_needs(profile.site_needs)
    check_needs(plugin, needs)
    kind, version = head_of(Site)
    return "\n".join(
        (
            f"# yaml-language-server: $schema={schema or SCHEMA_BASE + schema_name(kind, version)}",
            f"# The site for profile {profile.id} of {plugin}. Put a value in the place of each null;",
            "# 'moeplan site probe' finds some of them and 'moeplan site merge' puts them in.",
            f"kind: {kind}",
            f"schemaVersion: {version}",
            *dump_yaml({"runtime": plugin, "profile": profile.id}).splitlines(),
            *_tree(needs),
            "",
        )
    )


def _tree(needs: Sequence[SiteNeed]) -> Iterator[str]:
    """Yield the lines of all keys; the nodes stand where the document has them."""
    grouped: dict[str, list[SiteNeed]] = {}
    for need in needs:
        grouped.setdefault(need.key.partition(".")[0], []).append(need)
    for key, members in grouped.items():
        yield ""
        if key == "nodes[]":
            yield from _nodes(members)
        else:
            yield from _group(_by_steps((need.key, need) for need in members), 0)


def _nodes(needs: Sequence[SiteNeed]) -> Iterator[str]:
    roles = node_roles(needs)
    yield "nodes:"
    for role in roles or (None,):
        chosen: dict[str, SiteNeed] = {}
        for need in needs:
            if not need.roles or role in need.roles:
                key = need.key.removeprefix(NODES)
                # Among the needs of a key the plugin's for this very role comes first, then its own, then the core's.
                if key not in chosen or (need.roles and not chosen[key].roles):
                    chosen[key] = need
        lines = _group(_by_steps(chosen.items()), 2)
        first = True
        for line in lines:
            if first and not line.lstrip().startswith("#"):
                yield f"- {line[2:]}"
                if role is not None:
                    yield f"  roles: [{role}]"
                first = False
            else:
                yield line


def _by_steps(needs: Any) -> Tree:
    tree: Tree = {}
    for key, need in needs:
        *above, last = key.split(".")
        place = tree
        for step in above:
            place = place.setdefault(step, {})
        place.setdefault(last, need)
    return tree


def _group(tree: Tree, indent: int) -> Iterator[str]:
    for key, item in tree.items():
        if isinstance(item, SiteNeed):
            yield from _value(key, item, indent)
        elif all(not need.required and need.default is None for need in _leaves(item)):
            yield f"{' ' * indent}# {key}:"
            for line in _group(item, indent + 2):
                yield line if line.lstrip().startswith("#") else f"{' ' * indent}# {line[indent:]}"
        else:
            yield f"{' ' * indent}{key}:"
            yield from _group(item, indent + 2)


def _leaves(tree: Tree) -> Iterator[SiteNeed]:
    for item in tree.values():
        if isinstance(item, SiteNeed):
            yield item
        else:
            yield from _leaves(item)


def _value(key: str, need: SiteNeed, indent: int) -> Iterator[str]:
    before = " " * indent
    for text in (need.title, f"Find it: {need.how}", f"Example: {need.example}" if need.example else None):
        for line in wrap(text or "", _WIDTH - indent, break_long_words=False, break_on_hyphens=False):
            yield f"{before}# {line}"
    written = dump_yaml({key: read_default(need)}).splitlines()
    if need.default is not None:
        yield from (f"{before}{line}" for line in written)
    elif need.required:
        yield f"{before}{written[0]}  # {REQUIRED}"
    else:
        yield f"{before}# {key}:"
