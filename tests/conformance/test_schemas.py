"""One corpus against schema and model both; the checked-in schemas against the model they are made from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from moeplan.errors import InputError
from moeplan.wire.converter import structure
from moeplan.wire.documents import DOCUMENTS, dump_document, load_document, load_value
from moeplan.wire.schemas import build_schema, check_schema, head_of, load_schema
from moeplan.wire.strict_json import parse_strict
from tests.conformance.make_schemas import SCHEMAS, rendered

CORPUS = Path(__file__).parent / "corpus"
VALID = sorted((CORPUS / "valid").glob("*.json"))
INVALID = sorted((CORPUS / "invalid").glob("*.json"))
UNPARSABLE = json.loads((CORPUS / "unparsable" / "index.json").read_bytes())
CLASSES = {head_of(cls)[0]: cls for cls in DOCUMENTS}


def _kind(path: Path) -> str:
    return path.name.split("-")[0]


def _name(path: Path) -> str:
    return path.stem


def test_the_corpus_covers_every_kind() -> None:
    assert {_kind(path) for path in VALID} == set(CLASSES)
    assert {_kind(path) for path in INVALID} == set(CLASSES)
    assert len(INVALID) >= 60
    listed = {path.name for path in (CORPUS / "unparsable").glob("*.bin")}
    assert listed == set(UNPARSABLE)


def test_checked_in_schemas_are_those_of_the_model() -> None:
    """Drift: ``python -m tests.conformance.make_schemas`` writes them anew."""
    assert {path.name: path.read_text("utf-8") for path in SCHEMAS.iterdir()} == rendered()


@pytest.mark.parametrize("cls", DOCUMENTS, ids=lambda cls: cls.__name__)
def test_every_schema_is_meta_valid_and_closed(cls: type) -> None:
    schema = load_schema(*head_of(cls))
    jsonschema.Draft202012Validator.check_schema(schema)
    for part in (schema, *schema["$defs"].values()):
        assert part["type"] == "object"
        assert part["additionalProperties"] is False
        assert part["required"] == list(part["properties"])
    assert schema == build_schema(cls)


@pytest.mark.parametrize("path", VALID, ids=_name)
def test_valid_documents_pass_and_come_back_byte_for_byte(path: Path) -> None:
    data, cls = path.read_bytes(), CLASSES[_kind(path)]
    jsonschema.validate(json.loads(data), load_schema(*head_of(cls)))
    document: object = load_document(data, cls)
    assert type(document) is cls
    assert dump_document(document) == data
    assert structure(json.loads(data), cls) == document


@pytest.mark.parametrize("path", INVALID, ids=_name)
def test_invalid_documents_are_refused(path: Path) -> None:
    case: dict[str, Any] = parse_strict(path.read_bytes())
    cls = CLASSES[case["kind"]]
    with pytest.raises(InputError) as caught:
        load_value(case["document"], cls)
    found = [issue.code for issue in caught.value.issues]
    assert set(case["codes"]) <= set(found), found
    for issue in caught.value.issues:
        assert issue.path.startswith("$")
        assert str(issue).isprintable()
    bytes_too = json.dumps(case["document"]).encode()
    with pytest.raises(InputError):
        load_document(bytes_too, cls)


@pytest.mark.parametrize("path", INVALID, ids=_name)
def test_structural_faults_are_seen_by_schema_and_model_each_alone(path: Path) -> None:
    case: dict[str, Any] = parse_strict(path.read_bytes())
    head = head_of(CLASSES[case["kind"]])
    if case["structural"]:
        with pytest.raises(InputError):
            check_schema(case["document"], *head)
        with pytest.raises(InputError):
            structure(case["document"], CLASSES[case["kind"]])
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(_without_newline_ends(case["document"]), load_schema(*head))
    else:
        check_schema(case["document"], *head)


def _without_newline_ends(value: Any) -> Any:
    """Put a character that Python's ``$`` sees where a text ends with a newline, which ECMA-262's ``$`` sees too."""
    if isinstance(value, str) and value.endswith("\n") and not value.startswith("-----BEGIN PUBLIC"):
        return value + "\x00"
    if isinstance(value, dict):
        return {key: _without_newline_ends(item) for key, item in value.items()}
    return [_without_newline_ends(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("path", VALID, ids=_name)
def test_each_key_of_each_valid_document_is_needed_and_no_other_is_taken(path: Path) -> None:
    """Take each key away, and add one beside each: refused by schema and by model, at that place."""
    cls = CLASSES[_kind(path)]
    value = json.loads(path.read_bytes())
    for where, holder in list(_objects(value, "$")):
        for key in list(holder):
            kept = holder.pop(key)
            _both_refuse(value, cls)
            holder[key] = kept
        holder["zzz"] = 1
        found = _both_refuse(value, cls)
        assert f"{where}.zzz" in found or not found, (where, found)
        del holder["zzz"]


def _both_refuse(value: Any, cls: type) -> list[str]:
    with pytest.raises(InputError):
        structure(value, cls)
    with pytest.raises(InputError) as caught:
        check_schema(value, *head_of(cls))
    return [issue.path for issue in caught.value.issues if issue.code == "unknown_key"]


def _objects(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        yield path, value
        for key, item in value.items():
            yield from _objects(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _objects(item, f"{path}[{index}]")


@pytest.mark.parametrize("name", sorted(UNPARSABLE))
def test_unparsable_bytes_are_refused(name: str) -> None:
    data = (CORPUS / "unparsable" / name).read_bytes()
    for cls in DOCUMENTS:
        with pytest.raises(InputError) as caught:
            load_document(data, cls)
        assert {issue.code for issue in caught.value.issues} == set(UNPARSABLE[name]["codes"])
        assert all(str(issue).isprintable() for issue in caught.value.issues)
