"""A price that somebody declares, with its date and its source -> ``price``."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal

from moeplan.errors import InputError, Issue, escape
from moeplan.model.evidence import Collector
from moeplan.model.observations import Price
from moeplan.units import MAX_SAFE_INTEGER, NS_PER_S, parse_instant
from moeplan.version import VERSION
from moeplan.wire.observation import MadeObservation, ObservationContext, enclosing_interval, make_observation

__all__ = ["declared_price", "import_price", "parse_micros"]

_AMOUNT = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?", re.ASCII)
_MICROS = 10**6


def parse_micros(option: str, text: str) -> int:
    """Return millionths of a currency unit for an amount such as ``2.49``. Exact.

    Raises:
        InputError: not an amount above 0 with at most six decimals.
    """
    amount = Decimal(text) * _MICROS if _AMOUNT.fullmatch(text) else Decimal(0)
    if not 1 <= amount <= MAX_SAFE_INTEGER:
        expected = "an amount above 0 with at most six decimals, such as 2.49"
        raise InputError(Issue(option, "invalid_amount", "not a price", expected, escape(repr(text), 40)))
    return int(amount)


def declared_price(
    currency: str, per_accelerator_hour: str, accelerators: int, dated: str, source: str, now: str
) -> Price:
    """Return a price from what was stated.

    Args:
        currency: three capital letters, as ISO 4217 has them.
        per_accelerator_hour: the amount for one accelerator and hour, as a decimal.
        accelerators: how many are paid for.
        dated: the day of the price, ``YYYY-MM-DD``.
        source: where it was read.
        now: the instant of the declaration.

    Raises:
        InputError: with the option as its path.
    """
    micros = parse_micros("--per-accelerator-hour", per_accelerator_hour)
    if re.fullmatch(r"[A-Z]{3}", currency, re.ASCII) is None:
        raise InputError(
            Issue("--currency", "invalid_value", "not a currency", "a code such as USD", escape(repr(currency), 40))
        )
    if not 1 <= accelerators <= 1_000_000:
        raise InputError(
            Issue("--accelerators", "out_of_range", "value refused", "1 to 1000000", escape(str(accelerators), 40))
        )
    _require_day(dated, now)
    if not 1 <= len(source) <= 400 or not source.isprintable():
        expected = "1 to 400 characters: a price list's address, or a contract's number"
        raise InputError(Issue("--source", "invalid_value", "not a source", expected, escape(repr(source), 80)))
    return Price(
        currency=currency,
        micros_per_accelerator_hour=micros,
        accelerators=accelerators,
        dated=dated,
        source=source,
    )


def _require_day(dated: str, now: str) -> None:
    try:
        fits = re.fullmatch(r"\d{4}-\d{2}-\d{2}", dated, re.ASCII) is not None and date.fromisoformat(dated) is not None
    except ValueError:
        fits = False
    if not fits:
        raise InputError(Issue("--dated", "invalid_date", "not a day", "YYYY-MM-DD", escape(repr(dated), 40)))
    if dated > now[:10]:
        raise InputError(
            Issue("--dated", "date_in_future", "the price is of a later day", f"{now[:10]} at most", dated)
        )


def import_price(price: Price, now: str, context: ObservationContext) -> MadeObservation:
    """Return the record of a declared price. Pure: ``now`` is the instant of the declaration."""
    instant = parse_instant(now) * NS_PER_S
    interval, _origin = enclosing_interval(instant, instant)
    collector = Collector("moeplan", VERSION, "price", "1")
    return make_observation(price, {}, context=context, collector=collector, interval=interval)
