"""Kubernetes quantities."""

from __future__ import annotations

from decimal import Decimal

import pytest

from moeplan.errors import InputError
from moeplan.manifests.quantities import parse_bytes, parse_count, parse_millicores


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("100Gi", 107_374_182_400),
        ("1.5Ki", 1536),
        ("2e3", 2000),
        ("2E3", 2000),
        ("1E", 10**18),
        ("1Ei", 2**60),
        ("1000m", 1),
        (".5k", 500),
        ("5.", 5),
        ("+7", 7),
        (8, 8),
        (Decimal("1e3"), 1000),
        ("128974848000m", 128974848),
    ],
)
def test_bytes(value: object, expected: int) -> None:
    assert parse_bytes(value) == expected


@pytest.mark.parametrize(("value", "expected"), [("1500m", 1500), ("2", 2000), (Decimal("0.5"), 500), ("1000u", 1)])
def test_millicores(value: object, expected: int) -> None:
    assert parse_millicores(value) == expected


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("", "invalid_quantity"),
        ("Gi", "invalid_quantity"),
        ("1 Gi", "invalid_quantity"),
        ("1GiB", "invalid_quantity"),
        ("-1", "invalid_quantity"),
        ("1gi", "invalid_quantity"),
        ("1Ki2", "invalid_quantity"),
        ("9Ei", "invalid_quantity"),
        ("1e99", "invalid_quantity"),
        ("1e-999", "invalid_quantity"),
        ("٣", "invalid_quantity"),
        ("1" * 300, "invalid_quantity"),
        (Decimal("NaN"), "invalid_quantity"),
        (True, "invalid_quantity"),
        (None, "invalid_quantity"),
        (0.5, "invalid_quantity"),
        ("1m", "inexact_quantity"),
    ],
)
def test_what_is_none_is_refused(value: object, code: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_count(value, "$.x")
    assert (caught.value.issues[0].code, caught.value.issues[0].path) == (code, "$.x")
