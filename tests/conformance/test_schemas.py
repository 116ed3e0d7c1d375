"""One corpus against schema and model both; the checked-in schemas against the model they are made from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args, get_type_hints

import attrs
import jsonschema
import pytest

from moeplan.errors import InputError
from moeplan.model.fields import ABSENT, SCHEMA, camel
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
        left_out = _absent(cls)
        assert part["required"] == [key for key in part["properties"] if key in part["required"] or key not in left_out]
    assert schema == build_schema(cls)


def _classes(hint: Any) -> Any:
    """Yield every attrs class that a document class holds."""
    if attrs.has(hint):
        yield hint
        for inner in get_type_hints(hint).values():
            yield from _classes(inner)
    for inner in get_args(hint):
        yield from _classes(inner)


def _absent(cls: type) -> set[str]:
    """Return the keys that a document may leave out."""
    return {camel(f.name) for one in _classes(cls) for f in attrs.fields(one) if f.metadata.get(ABSENT)}


def _mappings(cls: type) -> set[str]:
    """Return the keys whose values are mappings of names that nobody lists."""
    found = (f for one in _classes(cls) for f in attrs.fields(one))
    return {camel(f.name) for f in found if f.metadata.get(SCHEMA, {}).get("type") == "object"}


def test_only_what_people_write_may_leave_keys_out() -> None:
    assert {cls.__name__ for cls in DOCUMENTS if _absent(cls)} == {"Site", "SiteProbe"}


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
    """Take each key away, and add one beside each: refused by schema and by model, at that place.

    Keys that may be left out are the exception: schema and model take the document without them.
    """
    cls = CLASSES[_kind(path)]
    value = json.loads(path.read_bytes())
    absent, mappings = _absent(cls), _mappings(cls)
    for where, holder in list(_objects(value, "$")):
        if where.rpartition(".")[2] in mappings:
            continue
        for key in list(holder):
            kept = holder.pop(key)
            if key in absent and _model_takes(value, cls):
                check_schema(value, *head_of(cls))
            else:
                _both_refuse(value, cls)
            holder[key] = kept
        holder["zzz"] = 1
        found = _both_refuse(value, cls)
        assert f"{where}.zzz" in found or not found, (where, found)
        del holder["zzz"]


def _model_takes(value: Any, cls: type) -> bool:
    try:
        structure(value, cls)
    except InputError:
        return False
    return True


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
