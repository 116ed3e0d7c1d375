"""Schemas made from the model, and how their refusals read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moeplan.errors import InputError
from moeplan.model.policy import Policy
from moeplan.model.registry import Registry
from moeplan.wire.schemas import SCHEMA_BASE, build_schema, check_schema, head_of, load_schema, schema_name

VALID = Path(__file__).parents[2] / "conformance" / "corpus" / "valid"


def _registry() -> dict[str, Any]:
    value: dict[str, Any] = json.loads((VALID / "registry-two-models.json").read_bytes())
    return value


def _issues(value: Any, kind: str = "registry") -> list[str]:
    with pytest.raises(InputError) as caught:
        check_schema(value, kind, "1.0.0")
    return [str(issue) for issue in caught.value.issues]


def test_head_name_and_id() -> None:
    assert head_of(Policy) == ("policy", "1.0.0")
    assert schema_name("policy", "1.0.0") == "policy-1.0.0.schema.json"
    schema = build_schema(Policy)
    assert schema["$id"] == SCHEMA_BASE + "policy-1.0.0.schema.json"
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert load_schema("policy", "1.0.0") == schema


def test_field_keywords_reach_the_schema() -> None:
    schema = build_schema(Registry)
    defaults = schema["$defs"]["Defaults"]["properties"]
    assert defaults["reserveBasisPoints"] == {"type": "integer", "minimum": 0, "maximum": 9999}
    assert defaults["capacityUnit"] == {"type": "string", "enum": ["decimal-gigabytes"]}
    memory = schema["$defs"]["Accelerator"]["properties"]["memoryGigabytes"]
    assert memory == {"anyOf": [{"$ref": "#/$defs/KnownInteger"}, {"$ref": "#/$defs/Unknown"}]}
    assert schema["$defs"]["KnownInteger"]["properties"]["provenance"]["minItems"] == 1
    url = schema["$defs"]["Model"]["properties"]["manifestUrl"]
    assert url["anyOf"][1] == {"type": "null"}


def test_no_schema_keyword_is_one_that_python_would_ignore() -> None:
    """``format`` asserts nothing by default, and ``$ref`` must stay within the document."""
    for schema in (build_schema(Registry), build_schema(Policy)):
        text = json.dumps(schema)
        assert '"format"' not in text
        assert all(part.startswith("#/$defs/") for part in _references(schema))


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if "$ref" in value else []
        return own + [found for item in value.values() for found in _references(item)]
    return [found for item in value for found in _references(item)] if isinstance(value, list) else []


@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        (("defaults", "reserveBasisPoints"), 10_000, "at most 9999, got 10000"),
        (("defaults", "reserveBasisPoints"), -1, "at least 0, got -1"),
        (("defaults", "reserveBasisPoints"), "13", "integer, got '13'"),
        (("defaults", "reserveBasisPoints"), True, "integer, got True"),
        (("defaults", "reserveBasisPoints"), 1.0, "integer, got 1.0"),
        (("defaults", "capacityUnit"), "GiB", "one of decimal-gigabytes, got 'GiB'"),
        (("defaults", "capacityUnit"), "a\n", "one of decimal-gigabytes, got 'a\\n'"),
    ],
)
def test_refusals_say_where_what_expected_and_got(place: tuple[str, str], value: object, expected: str) -> None:
    document = _registry()
    document[place[0]][place[1]] = value
    assert _issues(document) == [f"$.{place[0]}.{place[1]}: value refused; expected {expected}"]


def test_refusals_of_keys_patterns_and_shapes() -> None:
    document = _registry()
    document["hardware"][0]["memoryGigabytes"] = 141
    document["models"][0]["id"] = "a\n"
    document["sources"][0]["a b"] = 1
    assert _issues(document) == [
        "$.hardware[0].memoryGigabytes: none of the accepted shapes; expected an object, got 141",
        "$.models[0].id: value refused; expected text matching ^[a-z0-9][a-z0-9._-]{0,127}$, got 'a\\n'",
        '$.sources[0]["a b"]: key is not part of this document; expected only known keys',
    ]


def test_claims_are_explained_by_the_alternative_that_was_meant() -> None:
    document = _registry()
    document["hardware"][0]["memoryGigabytes"] = {"status": "known", "value": "141"}
    assert _issues(document) == [
        "$.hardware[0].memoryGigabytes.provenance: key missing; expected the key 'provenance'",
        "$.hardware[0].memoryGigabytes.value: value refused; expected integer, got '141'",
    ]
    document["hardware"][0]["memoryGigabytes"] = {"status": "guessed", "value": 141, "provenance": []}
    assert _issues(document) == [
        "$.hardware[0].memoryGigabytes.status: value refused; expected one of known, unknown, got 'guessed'"
    ]


def test_all_faults_are_told_sorted_but_at_most_a_hundred() -> None:
    document = _registry()
    document["defaults"]["reserveBasisPoints"] = -1
    del document["sources"]
    document["extra"] = 1
    assert [line.split(":")[0] for line in _issues(document)] == [
        "$.defaults.reserveBasisPoints",
        "$.extra",
        "$.sources",
    ]
    document = _registry()
    document["models"][0]["aliases"] = [1] * 1000
    assert len(_issues(document)) == 100


def test_hostile_text_is_escaped_and_cut() -> None:
    document = _registry()
    document["models"][0]["name"] = "\x1b[2J" * 1000
    document["\x1b]0;title\x07"] = "\u202e"
    for line in _issues(document):
        assert line.isprintable()
        assert len(line) < 500
