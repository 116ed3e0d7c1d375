"""Field makers: the validator of a class built in Python says the same as its schema does of JSON."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from moeplan.errors import InputError
from moeplan.model.fields import SCHEMA, boolean, camel, choice, const, digest, identifier, instant, integer, text


@attrs.frozen
class Thing:
    some_digest: str = digest()
    name_id: str = identifier()
    at: str = instant()
    count: int = integer(ge=1, le=9)
    flag: bool = boolean()
    word: str = choice("a", "b")
    note: str | None = text(max_length=5, optional=True)
    tags: tuple[str, ...] = text(many=True)
    kind: str = const("thing")


GOOD: dict[str, Any] = {
    "some_digest": "sha256:" + "0" * 64, "name_id": "a.b_c-9", "at": "2026-11-30T17:29:49Z", "count": 1, "flag": True,
    "word": "a", "note": None, "tags": ("x",),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "path"),
    [
        ("some_digest", "sha256:" + "0" * 63, "$.someDigest"), ("some_digest", "sha256:" + "F" * 64, "$.someDigest"),
        ("some_digest", "sha256:" + "0" * 64 + "\n", "$.someDigest"), ("some_digest", None, "$.someDigest"),
        ("name_id", "A", "$.nameId"), ("name_id", "-a", "$.nameId"), ("name_id", "a" * 129, "$.nameId"),
        ("at", "2026-02-30T00:00:00Z", "$.at"), ("at", 0, "$.at"),
        ("count", 0, "$.count"), ("count", 10, "$.count"), ("count", True, "$.count"), ("count", 1.0, "$.count"),
        ("flag", 1, "$.flag"), ("flag", None, "$.flag"), ("word", "c", "$.word"), ("word", None, "$.word"),
        ("note", "", "$.note"), ("note", "123456", "$.note"), ("note", "a\u2066", "$.note"), ("note", "\x9b", "$.note"),
        ("tags", ["x"], "$.tags"), ("tags", ("x", ""), "$.tags[1]"), ("tags", None, "$.tags"),
        ("kind", "other", "$.kind"),
    ],
)  # fmt: skip
def test_refused_with_its_path(name: str, value: object, path: str) -> None:
    with pytest.raises(InputError) as caught:
        Thing(**GOOD | {name: value})
    assert [(issue.code, issue.path) for issue in caught.value.issues] == [("invalid_value", path)]
    assert str(caught.value).isprintable()


def test_accepted_and_frozen() -> None:
    thing = Thing(**GOOD)
    assert thing.kind == "thing"
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        thing.count = 2  # type: ignore[misc]
    assert attrs.fields(Thing).count.metadata[SCHEMA] == {"type": "integer", "minimum": 1, "maximum": 9}


def test_camel() -> None:
    assert camel("target_inter_token_ms") == "targetInterTokenMs"
    assert camel("kind") == "kind"
