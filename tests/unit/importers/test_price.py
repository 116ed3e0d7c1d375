"""A declared price: exact millionths, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from moeplan.errors import InputError
from moeplan.importers.price import declared_price, import_price, parse_micros
from moeplan.model.observations import Price
from moeplan.wire.observation import ObservationContext
from tests.build import digest_of, make_deployment

NOW = "2026-12-01T10:00:00Z"
STATED: dict[str, Any] = {
    "currency": "USD",
    "per_accelerator_hour": "2.49",
    "accelerators": 8,
    "dated": "2026-11-30",
    "source": "a price list",
    "now": NOW,
}


def test_a_price_becomes_a_record_of_the_moment_it_was_declared() -> None:
    price = declared_price(**STATED)
    assert price == Price(
        currency="USD",
        micros_per_accelerator_hour=2_490_000,
        accelerators=8,
        dated="2026-11-30",
        source="a price list",
    )
    made = import_price(price, NOW, ObservationContext(digest_of("plan"), make_deployment()))
    assert made.record.type == "price"
    assert (made.record.interval.start, made.record.attachments) == (NOW, ())
    assert list(made.files) == [made.path]


@pytest.mark.parametrize(
    ("text", "micros"), [("2", 2_000_000), ("0.000001", 1), ("999999999.999999", 999_999_999_999_999)]
)
def test_amounts_are_exact(text: str, micros: int) -> None:
    assert parse_micros("--per-accelerator-hour", text) == micros


@pytest.mark.parametrize(
    ("change", "path", "code"),
    [
        ({"per_accelerator_hour": "0"}, "--per-accelerator-hour", "invalid_amount"),
        ({"per_accelerator_hour": "-1"}, "--per-accelerator-hour", "invalid_amount"),
        ({"per_accelerator_hour": "1e3"}, "--per-accelerator-hour", "invalid_amount"),
        ({"per_accelerator_hour": "0.0000001"}, "--per-accelerator-hour", "invalid_amount"),
        ({"per_accelerator_hour": "2,49"}, "--per-accelerator-hour", "invalid_amount"),
        ({"per_accelerator_hour": "NaN"}, "--per-accelerator-hour", "invalid_amount"),
        ({"currency": "usd"}, "--currency", "invalid_value"),
        ({"currency": "USDX"}, "--currency", "invalid_value"),
        ({"accelerators": 0}, "--accelerators", "out_of_range"),
        ({"dated": "2026-02-30"}, "--dated", "invalid_date"),
        ({"dated": "30.11.2026"}, "--dated", "invalid_date"),
        ({"dated": "2026-12-02"}, "--dated", "date_in_future"),
        ({"source": ""}, "--source", "invalid_value"),
        ({"source": "a\nb"}, "--source", "invalid_value"),
    ],
)
def test_what_is_refused(change: dict[str, Any], path: str, code: str) -> None:
    with pytest.raises(InputError) as caught:
        declared_price(**(STATED | change))
    assert [(issue.path, issue.code) for issue in caught.value.issues] == [(path, code)]
