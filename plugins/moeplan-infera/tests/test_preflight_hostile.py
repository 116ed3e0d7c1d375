"""Whatever stands in a file: it is read, or refused by name; nothing else is raised, and all text is printable."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from preflight_hosts import host, read, text

from moeplan.errors import InputRefusedError
from moeplan.wire.converter import structure, unstructure

ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 2**60, 1.5, 1e300, "", "x", "\x1b[2J\u202e", "gpu0 GEMM (bf16)", " present", "a -> b rdma",
     "unlimited", [], {}, [[]], [None], {"": None}, {"ionic_0": {}}, "z" * 5000]
)  # fmt: skip


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value within."""
    found = [at] if at else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += paths(item, (*at, key))
    return found


PATHS = paths(host())


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PATHS), ODD, st.booleans()), min_size=1, max_size=3))
def test_any_value_anywhere(changes: list[tuple[tuple[Any, ...], Any, bool]]) -> None:
    made = copy.deepcopy(host())
    for path, value, drop in changes:
        within: Any = made
        try:
            for key in path[:-1]:
                within = within[key]
            if drop:
                del within[path[-1]]
            else:
                within[path[-1]] = value
        except (KeyError, IndexError, TypeError):  # an earlier change took the place away
            continue
    assert all(told.isprintable() for told in said(made))


def said(made: dict[str, Any]) -> list[str]:
    """Return every message: of findings in what was read, which must be whole, or of the refusal."""
    try:
        result = read(text(made), text(host("node-b", "node-a", 2)))
    except InputRefusedError as error:
        return [str(issue) for issue in error.issues]
    assert structure(unstructure(result), type(result)) == result
    return [finding.message for finding in result.findings]
