"""Texts that every match holds, and signatures that are too wide."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moeplan.diagnosis.required_text import anchors, signature_fault
from tests.unit.diagnosis.made import signature


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        (r"World size \(\d+\) is larger than the number", {") is larger than the number"}),
        (r"draft attention \(\w+\) does not support", {") does not support"}),
        (r"no peer|timed out after \d+ s", {"no peer", "timed out after "}),
        (r"(one|another) (?:is )?gone", {"gone"}),
        (r"x(?:one alone|another)y", {"one alone", "another"}),
        (r"(?:abcdef){2,}", {"abcdef"}),
        (r"(?:abcdef)*g", {"g"}),
        (r"^begin$", {"begin"}),
        (r"namespaces \"infera\" not found", {"namespaces "}),
        (r"<[A-Z_]+> is not a directory", {" is not a directory"}),
        (r"(?i)Out of Memory", {"out of memory"}),
        (r"\d+|text", set()),
        (r"[ab]?", set()),
        ("é", set()),
    ],
)
def test_the_longest_text_that_must_be_there_is_looked_for(pattern: str, wanted: set[str]) -> None:
    assert {one.text for one in anchors(signature("A", pattern=pattern))} == wanted


def test_a_literal_that_is_longer_than_the_patterns_is_taken() -> None:
    assert [one.text for one in anchors(signature("A", "much the longest", pattern="short"))] == ["much the longest"]


@pytest.mark.parametrize("text", ["namespaces ", ") is larger than the number", "a'b [x] {y}~"])
def test_what_is_looked_for_is_written_as_it_is_in_json(text: str) -> None:
    found = {one.text for one in anchors(signature("A", text + '"é<&>\\/'))}
    assert found == {text}
    assert text in json.dumps(text)


@pytest.mark.parametrize(
    ("literals", "pattern"),
    [
        ((), r"torch\.OutOfMemoryError"),
        ((), "AssertionError"),
        ((), "CUDA ran out of its memory|ValueError"),
        (("RuntimeError",), r"\d+"),
        ((), "failed with error"),
        ((), r"QP.*RTR"),
        ((), r".+"),
        (("Traceback (most recent call last)",), None),
        ((), r"(?:some specific text)?x"),
    ],
)
def test_a_signature_that_is_too_wide_is_a_fault(literals: tuple[str, ...], pattern: str | None) -> None:
    fault = signature_fault(signature("A", *literals, pattern=pattern))
    assert fault is not None
    assert fault.code == "generic_signature"
    assert fault.path == "signature A"


def test_the_name_of_an_exception_alone_is_said_to_be_one() -> None:
    alone = signature_fault(signature("A", pattern=r"torch\.OutOfMemoryError"))
    wide = signature_fault(signature("A", pattern=r"failed \d+"))
    assert alone is not None
    assert "name of an exception alone" in alone.message
    assert wide is not None
    assert "too wide" in wide.message


@pytest.mark.parametrize(
    ("literals", "pattern"),
    [
        (("Failed to find remote engine_id",), None),
        ((), r"World size \(\d+\) is larger than the number of available GPUs \(\d+\) in this node"),
        ((), "ValueError: too many values to unpack"),
        ((), "OutOfMemoryError: Tried to allocate 2.32 GiB"),
        ((), "DiskPressure"),
        (("torch.OutOfMemoryError", "sampler warm-up"), None),
    ],
)
def test_a_specific_signature_is_none(literals: tuple[str, ...], pattern: str | None) -> None:
    assert signature_fault(signature("A", *literals, pattern=pattern)) is None


@pytest.mark.shared
def test_the_patterns_of_the_collected_facts_are_specific_but_for_known_ones(shared_dir: Path) -> None:
    """The three are too wide as they were collected: an exception's name alone, and two words of three letters."""
    wide = set()
    for name in ("cuda_facts.json", "rocm_facts.json"):
        for fact in json.loads((shared_dir / "facts" / name).read_text("utf-8"))["facts"]:
            if fact.get("log_pattern") and signature_fault(signature("A", pattern=fact["log_pattern"])):
                wide.add(fact["id"])
    assert wide == {"C-MEM-001", "C-MEM-005", "R-PD-013"}
