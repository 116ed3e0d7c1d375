"""Change single values of a YAML file in their lines, so that a person's comments and layout stay."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from moeplan.manifests.write import dump_yaml

__all__ = ["FOUND", "Path", "edit_lines", "rewrite"]

Path = tuple[str | int, ...]
"""Keys and indices from the top."""
FOUND = "found by site probe"
"""The comment after a value that was put in."""
_HEAD = """\
# The site, written anew by 'moeplan site merge': the file before had a layout whose comments could not be kept.
# yaml-language-server: $schema=https://moeplan.dev/schemas/site-1.0.0.schema.json
"""

Edit = tuple[int, int, str]
"""From where to where, in characters, and what stands there then."""


def edit_lines(data: bytes, changes: Mapping[Path, Any]) -> bytes | None:
    """Return the YAML in ``data`` with values put in, or None where single lines will not do.

    Whoever calls this reads the result again and holds it against what was wanted.

    Args:
        data: one YAML document in block style; JSON and braces give None.
        changes: values by their paths; a key that is not there is added to its mapping.
    """
    import yaml

    if not changes:
        return data
    if data.lstrip().startswith(b"{"):
        return None
    text = data.decode("utf-8")
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    edits: list[Edit] = []
    added: dict[Path, dict[str, Any]] = {}
    for path, value in changes.items():
        holder, key, rest = _holder(root, path)
        if holder is None or holder.flow_style or not isinstance(holder, yaml.MappingNode) or not isinstance(key, str):
            return None
        node = _member(holder, key)
        if node is None:
            place = added.setdefault(path[: len(path) - len(rest) - 1], {})
            _nest(place, (key, *rest), value)
        elif rest or not isinstance(node, yaml.ScalarNode) or node.start_mark.line != node.end_mark.line:
            return None
        else:
            edits.append(_replaced(text, holder, node, key, value))
    for path, members in added.items():
        holder, _key, _rest = _holder(root, (*path, ""))
        edits.append(_inserted(text, holder, members))
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text.encode("utf-8")


def rewrite(data: bytes, value: Mapping[str, Any]) -> bytes:
    """Return the file's values written anew: JSON where it was JSON, else YAML."""
    if data.lstrip().startswith(b"{"):
        return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8")
    return (_HEAD + dump_yaml(value)).encode("utf-8")


def _member(holder: Any, step: str | int) -> Any:
    if isinstance(step, int):
        items = holder.value if type(holder).__name__ == "SequenceNode" else []
        return items[step] if step < len(items) else None
    pairs = holder.value if type(holder).__name__ == "MappingNode" else []
    return next((item for key, item in pairs if key.value == step), None)


def _holder(root: Any, path: Path) -> tuple[Any, str | int, Path]:
    """Return the deepest collection on the way that is there, the next step from it, and the steps after that."""
    holder = root
    for depth, step in enumerate(path):
        node = _member(holder, step)
        if depth == len(path) - 1 or node is None or type(node).__name__ == "ScalarNode":
            return holder, step, path[depth + 1 :]
        holder = node
    return None, "", ()


def _nest(place: dict[str, Any], steps: tuple[str | int, ...], value: Any) -> None:
    for step in steps[:-1]:
        place = place.setdefault(str(step), {})
    place[str(steps[-1])] = value


def _replaced(text: str, holder: Any, node: Any, key: str, value: Any) -> Edit:
    """Return the edit of a value on its line; its ``required`` comment gives way to one that says where it is from."""
    start, end = node.start_mark.index, node.end_mark.index
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end
    after = text[end:line_end]
    told = f"  # {FOUND}" if after.strip() in ("", "# required") else after
    gap = "" if start > 0 and text[start - 1] in " \t" else " "
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        indent = " " * holder.value[0][0].start_mark.column
        _first, *lines = dump_yaml({key: value}).splitlines()
        return start, line_end, f"{gap}{told.strip()}\n" + "\n".join(f"{indent}{line}" for line in lines)
    return start, line_end, f"{gap}{_inline(value)}{told}"


def _inline(value: Any) -> str:
    """Return a value on one line: lists and mappings as JSON, which YAML is a superset of."""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return dump_yaml({"k": value}).removeprefix("k: ").removesuffix("\n")


def _inserted(text: str, holder: Any, members: Mapping[str, Any]) -> Edit:
    """Return the edit that puts members after the first one of a block mapping, in its indentation."""
    first_key, first = holder.value[0]
    line_end = text.find("\n", max(first.end_mark.index, first_key.end_mark.index))
    if type(first).__name__ != "ScalarNode":
        line_end = text.rfind("\n", 0, first_key.start_mark.index)
    place = len(text) if line_end < 0 else line_end
    indent = " " * first_key.start_mark.column
    lines = []
    for key, value in members.items():
        for number, line in enumerate(dump_yaml({key: value}).splitlines()):
            told = f"  # {FOUND}" if number == 0 else ""
            lines.append(f"{indent}{line}{told}")
    return place, place, "\n" + "\n".join(lines)
