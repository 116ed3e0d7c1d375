"""Names a bundle may hold."""

from __future__ import annotations

import pytest

from moeplan.bundle.container import check_name, check_names
from moeplan.errors import VerificationError


@pytest.mark.parametrize("name", ["plan.json", "a/b/c", "a..b", "A_-.9", "x" * 512, "9/0"])
def test_plain_names_pass(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "", "/", "/etc/passwd", "../x", "a/../b", "a/./b", ".", "..", "a//b", "a/", ".hidden", "a/.b", "-rf", "_x",
        "a b", "a\\b", "C:x", "a\nb", "a\0b", "ä", "a\u202eb", "\udcff", "x" * 513, "a\n",
    ],
)  # fmt: skip
def test_odd_names_are_refused_and_shown_escaped(name: str) -> None:
    with pytest.raises(VerificationError) as caught:
        check_name(name)
    issue = caught.value.issues[0]
    assert issue.code == "container_name"
    assert str(issue).isprintable()


@pytest.mark.parametrize(
    "names", [["a", "A"], ["x/a.json", "X/A.json"], ["a", "a/b"], ["a/B", "a/b/c"], ["A", "a-b", "a/b"]]
)
def test_names_that_cannot_lie_side_by_side_are_refused(names: list[str]) -> None:
    for order in (names, names[::-1]):
        with pytest.raises(VerificationError) as caught:
            check_names(order)
        assert caught.value.issues[0].code == "container_collision"


def test_names_that_share_a_directory_or_a_beginning_pass() -> None:
    check_names(["a", "a.b", "ab/c", "b/a", "b/c"])
