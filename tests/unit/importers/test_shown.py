"""What is taken over from a tool's file, and what is not."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from moeplan.importers.shown import endpoint_word, model_word, shown, version_word


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7, "7"),
        (Decimal("1.5"), "1.5"),
        (None, "None"),
        ("ms", "'ms'"),
        ("%", "'%'"),
        ("/home/ada", "text of 9 characters"),
        ("what is my diagnosis", "text of 20 characters"),
        ("sk-0123456789abcdefghij", "text of 23 characters"),
        ("10.1.2.3", "text of 8 characters"),
        ({"a": 1}, "dict"),
    ],
)
def test_values_are_shown_where_they_are_words_or_numbers(value: Any, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-V3"),
        ("/home/ada/models/M/", "M"),
        ("https://ada:pw@host.example/M", "M"),
        ("C:\\Users\\ada\\M", "M"),
    ],
)
def test_of_a_path_the_last_part_is_shown(name: str, word: str) -> None:
    assert model_word(name) == word


# Words as vLLM, SGLang, guidellm and aiperf write them.
@pytest.mark.parametrize("text", ["openai-chat", "vllm", "sglang-oai-chat", "/v1/chat/completions", "chat_completions"])
def test_kinds_of_endpoints_are_words(text: str) -> None:
    assert endpoint_word(text)


@pytest.mark.parametrize(
    "text", ["http://gpu7:8000", "10.1.2.3", "host.example", "sk-0123456789", "/home/ada/m", "Bearer x", "", "a b"]
)
def test_addresses_and_keys_are_none(text: str) -> None:
    assert not endpoint_word(text)


@pytest.mark.parametrize("text", ["0.32.0", "0.10.2rc1.dev3+g1a2b3c4", "v0.5.0", "1!2.0"[2:], "2026.11"])
def test_versions_are_kept(text: str) -> None:
    assert version_word(text) == text


@pytest.mark.parametrize("text", [None, "10.1.2.3", "/home/ada", "ada@example.org", "ada", "1." + "0." * 40 + "0"])
def test_what_is_no_version_is_not_kept(text: str | None) -> None:
    assert version_word(text) is None
