"""Prompts of exactly so many tokens, made of the model's own vocabulary. The text means nothing, and is not kept."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from moeplan.errors import InputError, Issue, escape
from moeplan.wire.files import read_file
from moeplan.wire.strict_json import MAX_BYTES

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["PromptMaker", "TokenIdPrompts", "WordPrompts", "read_token_ids", "read_words"]

_LEAST_WORDS = 16
_MOST_WORDS = 4096
_MOST_TOKENIZER_BYTES = 256 << 20
_SPACES = ("Ġ", "▁")
"""How tokens write the space before a word. Source: byte-level BPE (GPT-2); SentencePiece."""

Blocks = Sequence[tuple[str, int]]


class PromptMaker(Protocol):
    """Makes the prompt of named blocks: a block of one name begins with the same tokens in every prompt."""

    def prompt(self, blocks: Blocks) -> str | list[int]:
        """Return a prompt of exactly as many tokens as the blocks have."""


class WordPrompts:
    """Prompts of text: words that are one token each wherever they stand."""

    def __init__(self, words: Sequence[str], joiner: str, count: Callable[[str], int], seed: int) -> None:
        """Take the words, what stands between two of them, and how to count the tokens of a text."""
        self._words, self._joiner, self._count, self._seed = list(words), joiner, count, seed

    def prompt(self, blocks: Blocks) -> str:
        """Return the text of the blocks.

        Raises:
            InputError: the tokenizer counts another number of tokens.
        """
        drawn = [word for name, size in blocks for word in _draw(self._seed, name, self._words, size)]
        text, wanted = self._joiner.join(drawn), len(drawn)
        counted = self._count(text)
        if counted != wanted:
            step = "send token ids with --prompt token-ids and --api completions"
            raise InputError(
                Issue("--tokenizer", "length_missed", "no text of this length", str(wanted), str(counted), step)
            )
        return text


class TokenIdPrompts:
    """Prompts of token ids, which the completions API of vLLM and SGLang takes as they are."""

    def __init__(self, vocabulary: int, seed: int) -> None:
        """Draw from the middle of a vocabulary: special tokens stand at its ends."""
        self._ids, self._seed = range(vocabulary // 10, vocabulary * 9 // 10), seed

    def prompt(self, blocks: Blocks) -> list[int]:
        """Return the ids of the blocks."""
        return [one for name, size in blocks for one in _draw(self._seed, name, self._ids, size)]


def _draw(seed: int, name: str, choices: Sequence[Any], size: int) -> list[Any]:
    return random.Random(f"{seed}/{name}").choices(choices, k=size)


def read_words(directory: Path, seed: int) -> WordPrompts:
    """Return the prompts that the tokenizer of a checkpoint directory makes.

    Raises:
        InputError: the ``tokenizers`` distribution is not installed, or ``tokenizer.json`` is malformed or has too few
            words.
        StoreError: it cannot be read.
    """
    tokenizer = _tokenizer(directory / "tokenizer.json")

    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    for joiner, before in (("", " "), (" ", "")):
        words = _words(tokenizer, before, joiner)
        if len(words) >= _LEAST_WORDS:
            return WordPrompts(words, joiner, count, seed)
    step = "send token ids with --prompt token-ids and --api completions"
    message = "the tokenizer has too few words that are one token wherever they stand"
    raise InputError(Issue("--tokenizer", "no_words", message, f"at least {_LEAST_WORDS}", str(len(words)), step))


def _tokenizer(path: Path) -> Tokenizer:
    where = escape(str(path), 400)
    try:
        from tokenizers import Tokenizer
    except ImportError:
        step = "pip install 'moeplan[collect]', or send token ids with --prompt token-ids and --api completions"
        raise InputError(
            Issue("tokenizers", "not_installed", "the distribution 'tokenizers' is not installed", next=step)
        ) from None
    data = read_file(path, max_bytes=_MOST_TOKENIZER_BYTES)
    try:
        return Tokenizer.from_buffer(data)
    except Exception as error:  # the library raises bare Exception for whatever is wrong in the file
        message = f"not a tokenizer: {escape(str(error))}"
        raise InputError(
            Issue(where, "invalid_tokenizer", message, "a tokenizer.json of the tokenizers library")
        ) from None


def _words(tokenizer: Tokenizer, before: str, joiner: str) -> list[str]:
    """Return words whose text, three times over, is that one token three times."""
    found = []
    for token, number in sorted(tokenizer.get_vocab(with_added_tokens=False).items(), key=lambda item: item[1]):
        plain = token.lstrip("".join(_SPACES))
        if len(token) - len(plain) != 1 or not plain.isascii() or not plain.isalpha():
            continue
        word = before + plain
        if tokenizer.encode(joiner.join([word] * 3), add_special_tokens=False).ids == [number] * 3:
            found.append(word)
            if len(found) == _MOST_WORDS:
                break
    return found


def read_token_ids(directory: Path, seed: int) -> TokenIdPrompts:
    """Return prompts of ids from the vocabulary that ``config.json`` of a checkpoint directory states.

    Raises:
        InputError: it states no size of the vocabulary.
        StoreError: it cannot be read.
    """
    path = directory / "config.json"
    try:
        value = json.loads(read_file(path, max_bytes=MAX_BYTES))
    except (ValueError, RecursionError):
        raise InputError(Issue(escape(str(path), 400), "invalid_json", "not JSON", "a model's configuration")) from None
    places = [value, value.get("text_config")] if type(value) is dict else []
    sizes = [place.get("vocab_size") for place in places if type(place) is dict]
    size = next((size for size in sizes if type(size) is int and 100 <= size < 2**31), None)
    if size is None:
        raise InputError(
            Issue(f"{escape(str(path), 400)}: $.vocab_size", "value_missing", "no size of the vocabulary", "an integer")
        )
    return TokenIdPrompts(size, seed)
