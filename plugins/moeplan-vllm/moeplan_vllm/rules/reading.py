"""Reading of launches by code: a value, or None where only running would tell."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import cache
from typing import Any

from moeplan.facts.fields import Field, parse_field
from moeplan.facts.launches import Subject
from moeplan.facts.values import Place, Value

__all__ = ["connectors", "count", "flag", "is_set", "known_text", "look", "parse_count", "place_of", "transfer"]

_COUNT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)([kmgtKMGT]?)", re.ASCII)
_UNITS = {
    **{letter: 1000**power for power, letter in enumerate("kmgt", 1)},
    **{letter: 1024**power for power, letter in enumerate("KMGT", 1)},
}
"""Source: vLLM 0.27.1 wheel, engine/arg_utils.py human_readable_int: lower case is decimal, upper case binary."""
_field = cache(parse_field)


def look(subject: Subject, field: str) -> Value:
    """Return a field's value, the field as facts name it."""
    return subject.look(_field(field))


def count(subject: Subject, name: str, default: int) -> int | None:
    """Return an argument that is a count; ``default`` where it is absent, None where it is not known."""
    value = look(subject, f"argument {name}")
    if value.state == "absent":
        return default
    return parse_count(str(value.value)) if value.is_known else None


def parse_count(text: str) -> int | None:
    """Return a count as vLLM reads it: ``8192``, ``8k`` (8000), ``8K`` (8192), ``1.5k``; None for what is none."""
    match = _COUNT.fullmatch(text)
    if match is None or ("." in match[1] and match[2] not in "kmgt"):
        return None
    number = Decimal(match[1]) * _UNITS.get(match[2], 1)
    return int(number) if number == int(number) else None


def flag(subject: Subject, name: str) -> bool | None:
    """Return whether a flag is on; absent is off."""
    value = look(subject, f"argument {name}")
    if value.state == "absent":
        return False
    return value.value if value.is_known and isinstance(value.value, bool) else None


def is_set(subject: Subject, field: str) -> bool:
    """Return whether something is given there, known or not."""
    return look(subject, field).state != "absent"


def known_text(subject: Subject, field: str) -> str | None:
    """Return a known value as text, else None."""
    value = look(subject, field)
    return str(value.value) if value.is_known else None


def place_of(subject: Subject, field: str) -> Place:
    """Return where a field stands, or would."""
    return look(subject, field).place or subject.place()


def transfer(subject: Subject) -> dict[str, Any] | None:
    """Return the KV transfer's configuration; an empty one where there is none, None where it is not known."""
    value = subject.look(Field("argument", "--kv-transfer-config"))
    if value.state == "absent":
        return {}
    return value.value if value.is_known and isinstance(value.value, dict) else None


def connectors(subject: Subject) -> tuple[str, ...] | None:
    """Return the names of the KV connectors, those within a MultiConnector instead of it; None where not known."""
    config = transfer(subject)
    if config is None:
        return None
    return tuple(_names(config, 0))


def _names(config: Any, depth: int) -> list[str]:
    if not isinstance(config, dict) or depth > 4:
        return []
    extra = config.get("kv_connector_extra_config")
    inner = extra.get("connectors") if isinstance(extra, dict) else None
    if isinstance(inner, list):
        return [name for one in inner for name in _names(one, depth + 1)]
    name = config.get("kv_connector")
    return [name] if isinstance(name, str) else []
