"""Environment variables out of ConfigMaps among the manifests."""

from __future__ import annotations

from typing import Any

import pytest

from moeplan.facts.fields import parse_field
from tests.unit.facts.made import pod, scene

_MAP = "kind: ConfigMap\nmetadata: {name: a}\ndata: {MODE: '1', OTHER: '0'}\n---\n"


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ("envFrom: [{configMapRef: {name: a}}]", [("known", "1"), ("absent", None)]),
        ("envFrom: [{configMapRef: {name: a}, prefix: MY_}]", [("absent", None), ("absent", None)]),
        (
            "envFrom: [{configMapRef: {name: a}}]\n        env: [{name: MODE, value: '2'}]",
            [("known", "2"), ("absent", None)],
        ),
        ("envFrom: [{configMapRef: {name: a}}, {secretRef: {name: s}}]", [("unknown", None), ("unknown", None)]),
        ("envFrom: [{secretRef: {name: s}}, {configMapRef: {name: a}}]", [("known", "1"), ("unknown", None)]),
        ("envFrom: [{configMapRef: {name: b}}]", [("unknown", None), ("unknown", None)]),
        (
            "env: [{name: MODE, valueFrom: {configMapKeyRef: {name: a, key: OTHER}}}]",
            [("known", "0"), ("absent", None)],
        ),
        (
            "env: [{name: MODE, valueFrom: {configMapKeyRef: {name: b, key: OTHER}}}]",
            [("unknown", None), ("absent", None)],
        ),
    ],
)
def test_config_maps_among_the_manifests(more: str, wanted: list[tuple[str, Any]]) -> None:
    (launch,) = scene(_MAP + pod(more=more)).launches
    found = [launch.look(parse_field(f"environment {name}")) for name in ("MODE", "NONE")]
    assert [(value.state, value.value) for value in found] == wanted
