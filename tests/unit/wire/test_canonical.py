"""RFC 8785 against the RFC's own examples and the standard library's sorted form."""

from __future__ import annotations

import hashlib
import json

from hypothesis import given
from hypothesis import strategies as st

from moeplan.wire.canonical import canonical_bytes, canonical_line, identity


def test_keys_are_sorted_by_utf16_units() -> None:
    """The example of RFC 8785 section 3.2.3."""
    value = {
        "\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
        "\U0001f600": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis",
    }  # fmt: skip
    keys = list(json.loads(canonical_bytes(value)))
    assert keys == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


def test_strings_are_escaped_as_the_rfc_says() -> None:
    """The example of RFC 8785 section 3.2.2.2."""
    text = "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"\u002f"
    assert canonical_bytes(text) == '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'.encode()


def test_a_document_ends_with_one_line_feed() -> None:
    value = {"b": [1, True, None], "a": "é"}
    assert canonical_line(value) == '{"a":"é","b":[1,true,null]}\n'.encode()
    assert identity(value) == "sha256:" + hashlib.sha256('{"a":"é","b":[1,true,null]}\n'.encode()).hexdigest()


_ASCII = st.text(st.characters(min_codepoint=32, max_codepoint=126))
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | _ASCII,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_ASCII, inner, max_size=4),
    max_leaves=20,
)


@given(_VALUES)
def test_plain_values_have_the_standard_librarys_sorted_form(value: object) -> None:
    assert canonical_bytes(value) == json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
