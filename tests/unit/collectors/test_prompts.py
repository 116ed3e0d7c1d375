"""Prompts of exact length by a real tokenizer, and tokenizers that are none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from moeplan.collectors.prompts import WordPrompts, read_token_ids, read_words
from moeplan.errors import InputError

MODEL = Path(__file__).resolve().parents[3] / "demo" / "tiny-moe"
TOKENIZER = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
PROMPTS = read_words(MODEL, 7)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(1, 60)), min_size=1, max_size=5))
def test_a_prompt_has_as_many_tokens_as_its_blocks(blocks: list[tuple[str, int]]) -> None:
    ids = TOKENIZER.encode(PROMPTS.prompt(blocks), add_special_tokens=False).ids
    assert len(ids) == sum(size for _, size in blocks)


def test_a_block_begins_alike_in_every_prompt_and_seed_decides() -> None:
    long, short = PROMPTS.prompt([("a", 20)]), PROMPTS.prompt([("a", 12), ("b", 3)])
    ids = [TOKENIZER.encode(text, add_special_tokens=False).ids for text in (long, short)]
    assert ids[0][:12] == ids[1][:12]
    assert read_words(MODEL, 8).prompt([("a", 20)]) != long


def test_a_length_that_is_missed_is_an_error() -> None:
    with pytest.raises(InputError, match="no text of this length"):
        WordPrompts(["x"], "", lambda text: len(text) + 1, 0).prompt([("a", 3)])


def saved(tmp_path: Path, words: list[str]) -> Path:
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token=words[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_words_of_a_sentencepiece_like_tokenizer(tmp_path: Path) -> None:
    directory = saved(tmp_path, ["▁w" + letter for letter in "abcdefghijklmnopqrst"])
    text = read_words(directory, 1).prompt([("a", 9)])
    assert len(Tokenizer.from_file(str(directory / "tokenizer.json")).encode(text).ids) == 9


def test_too_few_words_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too few words"):
        read_words(saved(tmp_path, ["▁one", "▁two"]), 1)


@pytest.mark.parametrize("text", ["", "{}", '{"version": "1.0"}', "\x00"])
def test_what_is_no_tokenizer_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(InputError) as refused:
        read_words(tmp_path, 1)
    assert refused.value.issues[0].code == "invalid_tokenizer"


def test_token_ids_keep_off_the_ends_of_the_vocabulary() -> None:
    size = json.loads((MODEL / "config.json").read_bytes())["vocab_size"]
    ids = read_token_ids(MODEL, 1).prompt([("a", 5000)])
    assert len(ids) == 5000
    assert size // 10 <= min(ids) < max(ids) < size * 9 // 10


@pytest.mark.parametrize("text", ["[]", "{}", '{"vocab_size": "9"}', "x", '{"vocab_size": 5}'])
def test_a_configuration_without_a_vocabulary_is_named(text: str, tmp_path: Path) -> None:
    shutil.copy(MODEL / "tokenizer.json", tmp_path)
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(InputError) as refused:
        read_token_ids(tmp_path, 1)
    assert refused.value.issues[0].code in ("value_missing", "invalid_json")
