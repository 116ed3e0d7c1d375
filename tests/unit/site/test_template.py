"""The commented file: every need of the profile and of the core, nothing filled in that only the site knows."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from moeplan.errors import InputError, PluginError
from moeplan.model.plugin import FactSource, Profile, SiteNeed
from moeplan.site.needs import CORE_NEEDS, node_roles, with_core_needs
from moeplan.site.reading import load_site
from moeplan.site.template import site_template

_SOURCE = (FactSource("a document"),)


def _need(key: str, **rest: Any) -> SiteNeed:
    return SiteNeed(**{"key": key, "title": f"the {key}", "how": f"look for {key}", **rest})


def _profile(*needs: SiteNeed) -> Profile:
    return Profile("opt/pair", "t", "measured", "s", _SOURCE, needs)


PAIR = _profile(
    _need("namespace", example="serving"),
    _need("ports.serve", default="8000"),
    _need("images.engine", example="registry.example/vllm@sha256:…"),
    _need("network.rdmaDevices", required=False, example="[ionic_0]"),
    _need("imagePullSecrets", required=False),
    _need("kubernetes.storageClass", required=False),
    _need("kubernetes.version", required=False),
    _need("nodes[].modelDirectory", title="own copy", roles=("prefill", "decode")),
    _need("nodes[].address", roles=("decode",)),
    _need("tolerations", required=False),
)


def test_what_has_to_be_filled_in_is_null_and_loading_names_each() -> None:
    text = site_template("vllm-x", PAIR)
    with pytest.raises(InputError) as caught:
        load_site(text.encode())
    assert {issue.code for issue in caught.value.issues} == {"unfilled_value"}
    node = ["name", "modelDirectory", "storage.filesystem", "storage.local"]
    assert [issue.path.removeprefix("$.") for issue in caught.value.issues] == [
        "namespace", "hardware", "acceleratorsPerNode", "driver", "engineVersion",
        *(f"nodes[0].{key}" for key in node), *(f"nodes[1].{key}" for key in [node[0], "address", *node[1:]]),
        "images.engine", "modelNames.target", "prices.acceleratorHour", "prices.currency",
    ]  # fmt: skip
    assert text.count(": null  # required\n") == len(caught.value.issues)


def test_what_is_known_is_written() -> None:
    value = yaml.safe_load(site_template("vllm-x", PAIR))
    assert value["kind"] == "site"
    assert value["schemaVersion"] == "1.0.0"
    assert (value["runtime"], value["profile"]) == ("vllm-x", "opt/pair")
    assert value["ports"] == {"serve": 8000}
    assert [node["roles"] for node in value["nodes"]] == [["prefill"], ["decode"]]
    assert not {"network", "imagePullSecrets", "kubernetes", "tolerations"} & set(value)


def test_it_is_filled_in_by_putting_values_for_nulls() -> None:
    filled = site_template("vllm-x", _profile())
    for key, value in {
        "hardware": "h200", "acceleratorsPerNode": "8", "driver": "580", "engineVersion": "0.27.1", "name": "node-a",
        "modelDirectory": "/data", "filesystem": "xfs", "local": "true", "target": "Kimi-K3",
        "acceleratorHour": "'2.99'", "currency": "USD",
    }.items():  # fmt: skip
        assert filled.count(f"{key}: null  # required") == 1, key
        filled = filled.replace(f"{key}: null  # required", f"{key}: {value}")
    site = load_site(filled.encode())
    assert isinstance(site.nodes, tuple)
    assert [node.name for node in site.nodes] == ["node-a"]


def test_what_is_commented_out_becomes_right_by_taking_the_marks_away() -> None:
    text = site_template("vllm-x", PAIR)
    for old, new in (
        ("# network:\n", "network:\n"),
        ("  # rdmaDevices:\n", "  rdmaDevices: [ionic_0]\n"),
        ("# kubernetes:\n", "kubernetes:\n"),
        ("  # version:\n", "  version: v1.31.2\n"),
        ("# imagePullSecrets:\n", "imagePullSecrets: [login]\n"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    value = yaml.safe_load(text)
    assert value["network"] == {"rdmaDevices": ["ionic_0"]}
    assert value["kubernetes"] == {"version": "v1.31.2"}
    assert value["imagePullSecrets"] == ["login"]


def test_each_value_says_what_it_is_how_to_find_it_and_an_example() -> None:
    lines = site_template("vllm-x", PAIR).splitlines()
    assert lines[0] == "# yaml-language-server: $schema=https://moeplan.dev/schemas/site-1.0.0.schema.json"
    at = lines.index("namespace: null  # required")
    assert lines[at - 3 : at] == ["# the namespace", "# Find it: look for namespace", "# Example: serving"]
    assert site_template("x", PAIR, "../site.schema.json").startswith("# yaml-language-server: $schema=../site.schema")
    assert max(map(len, lines)) <= 120


def test_a_plugins_own_words_stand_before_the_cores() -> None:
    mine = _need("driver", title="amdgpu, as loaded", required=False)
    found = [need for need in with_core_needs((mine,)) if need.key == "driver"]
    assert found == [mine]
    text = site_template("vllm-x", _profile(mine))
    assert "# amdgpu, as loaded\n# Find it: look for driver\n# driver:\n" in text
    text = site_template("vllm-x", PAIR)
    assert text.count("  # own copy\n") == 2
    core = next(need.title for need in CORE_NEEDS if need.key == "nodes[].modelDirectory")
    assert core not in text
    one = _profile(_need("nodes[].modelDirectory", title="own copy", roles=("prefill",)), _need("nodes[].address"),
                   _need("nodes[].driver", roles=("decode",)))  # fmt: skip
    assert site_template("vllm-x", one).count(core) == 1


def test_roles_come_in_their_order() -> None:
    assert node_roles((_need("nodes[].name", roles=("worker", "leader")), _need("nodes[].address"))) == (
        "leader",
        "worker",
    )


@pytest.mark.parametrize(
    ("need", "code"),
    [
        (_need("nameSpace"), "unknown_site_key"),
        (_need("nodes[].directory"), "unknown_site_key"),
        (_need("nodes"), "unknown_site_key"),
        (_need("nodes.name"), "unknown_site_key"),
        (_need("images"), "unknown_site_key"),
        (_need("images.engine.tag"), "unknown_site_key"),
        (_need("namespace[].x"), "unknown_site_key"),
        (_need("namespace", roles=("serve",)), "unknown_site_key"),
        (_need("ports.serve", default="http"), "invalid_default"),
        (_need("nodes[].storage.local", default="yes"), "invalid_default"),
    ],
)
def test_a_need_that_no_site_can_meet_is_the_plugins_fault(need: SiteNeed, code: str) -> None:
    with pytest.raises(PluginError) as caught:
        site_template("vllm-x", _profile(need))
    assert [(issue.path, issue.code) for issue in caught.value.issues] == [("plugin vllm-x", code)]


def test_defaults_are_of_their_keys_types() -> None:
    needs = (
        _need("ports.serve", default="8000"),
        _need("nodes[].storage.local", default="true"),
        _need("network.rdmaDevices", default="a, b"),
        _need("engineVersion", default="0.27"),
    )
    value = yaml.safe_load(site_template("vllm-x", _profile(*needs)))
    assert value["ports"]["serve"] == 8000
    assert value["nodes"][0]["storage"]["local"] is True
    assert value["network"]["rdmaDevices"] == ["a", "b"]
    assert value["engineVersion"] == "0.27"
