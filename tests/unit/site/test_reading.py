"""A site as people write it: whole, in part, in YAML and JSON, and every way in which it is not filled in."""

from __future__ import annotations

from pathlib import Path

import pytest

from moeplan.errors import InputError, StoreError
from moeplan.site.reading import load_site, parse_partial_site, read_partial_site, read_site, site_values

HEAD = b"kind: site\nschemaVersion: 1.0.0\n"


def _faults(data: bytes) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        parse_partial_site(data, source="site.yaml")
    assert caught.value.source == "site.yaml"
    return [(issue.path, issue.code) for issue in caught.value.issues]


def test_a_part_needs_neither_kind_nor_version() -> None:
    data = b"hardware: h200\nacceleratorsPerNode: 8\nnodes: 2\ndriver: '580'\nengineVersion: 0.27.1\n"
    values = {
        "kind": "site",
        "schemaVersion": "1.0.0",
        "hardware": "h200",
        "acceleratorsPerNode": 8,
        "nodes": 2,
        "driver": "580",
        "engineVersion": "0.27.1",
    }
    assert {key: site_values(parse_partial_site(data))[key] for key in values} == values
    assert len(site_values(parse_partial_site(data))) == len(values)
    with pytest.raises(InputError) as caught:
        load_site(data)
    assert [issue.path for issue in caught.value.issues] == ["$.kind"]
    assert site_values(load_site(b"kind: site\nschemaVersion: 1.0.0\n" + data)) == values


def test_of_another_document_its_kind_is_told_and_not_its_nulls() -> None:
    assert [path for path, _ in _faults(b'{"kind": "deployment_validation_plan", "artifact": null}')] == ["$.kind"]


@pytest.mark.parametrize("data", [b'{"nodes": 2}', b"{nodes: 2}", b"nodes: 2", b'\n{\n"nodes": 2}\n'])
def test_yaml_and_json_say_the_same(data: bytes) -> None:
    assert site_values(parse_partial_site(data))["nodes"] == 2


def test_nodes_are_a_list_too() -> None:
    site = parse_partial_site(b"nodes:\n- {name: a, roles: [prefill]}\n- {name: b, driver: 580}\n")
    assert site_values(site)["nodes"] == [{"name": "a", "roles": ["prefill"]}, {"name": "b", "driver": "580"}]
    assert site_values(parse_partial_site(b"nodes: [a, b]"))["nodes"] == [{"name": "a"}, {"name": "b"}]
    assert _faults(b"nodes: [1]") == [("$.nodes[0]", "wrong_type")]


def test_a_bare_driver_number_is_text_and_a_fraction_asks_for_quotes() -> None:
    assert site_values(parse_partial_site(b"driver: 580"))["driver"] == "580"
    assert site_values(parse_partial_site(b'{"driver": 580}'))["driver"] == "580"
    with pytest.raises(InputError, match="put it in quotes") as caught:
        parse_partial_site(b"engineVersion: 0.27\nacceleratorsPerNode: 8")
    assert caught.value.issues[0].path == "$.engineVersion"


def test_each_null_is_named() -> None:
    data = b"namespace: null\nnodes:\n- name:\n  storage: {local: ~}\nimages:\n  engine: null\n"
    assert _faults(data) == [
        ("$.namespace", "unfilled_value"),
        ("$.nodes[0].name", "unfilled_value"),
        ("$.nodes[0].storage.local", "unfilled_value"),
        ("$.images.engine", "unfilled_value"),
    ]


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"nameSpace: a", ("$.nameSpace", "unknown_key")),
        (b"kind: policy", ("$.kind", "unsupported_kind")),
        (b"schemaVersion: 2.0.0", ("$.schemaVersion", "unsupported_version")),
        (b"[]", ("$", "wrong_type")),
        (b"a: [", ("$", "invalid_yaml")),
        (b'{"a": ', ("$", "invalid_json")),
        (b"nodes: 2\nnodes: 3", ("$.nodes", "duplicate_key")),
        (b"nodes: 0", ("$.nodes", "invalid_value")),
        (b"images: {engine: vllm/vllm-openai:v0.27.1}", ("$.images.engine", "invalid_value")),
        (b"nodes: [{name: a}, {name: a}]", ("$.nodes[1].name", "duplicate_name")),
        (b"nodes: [{name: a, accelerators: 1, freeAccelerators: 2}]", ("$.nodes[0].freeAccelerators", "invalid_value")),
    ],
)
def test_what_is_wrong_is_named(data: bytes, fault: tuple[str, str]) -> None:
    assert _faults(data) == [fault]


def test_the_nearest_key_is_told() -> None:
    with pytest.raises(InputError, match="did you mean 'namespace'"):
        parse_partial_site(b"nameSpace: a")


def test_files_are_named_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    with pytest.raises(StoreError):
        read_site(path)
    path.write_bytes(HEAD + b"hardware: mi355x\n")
    assert read_site(path) == read_partial_site(path)
    path.write_bytes(HEAD + b"hardware: null\n")
    with pytest.raises(InputError) as caught:
        read_site(path)
    assert caught.value.lines()[0].startswith(f"{path}: $.hardware: not filled in")
