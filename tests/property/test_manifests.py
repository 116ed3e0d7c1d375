"""Laws of the manifest toolkit: what is written is read back, and no input makes a reader fail in another way."""

from __future__ import annotations

import contextlib
import shlex
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from moeplan.errors import InputError
from moeplan.manifests.argument_table import parse_argument_table
from moeplan.manifests.arguments import read_arguments
from moeplan.manifests.commands import Word, commands_of, commands_of_script
from moeplan.manifests.pod_templates import find_pod_templates
from moeplan.manifests.quantities import parse_bytes
from moeplan.manifests.write import dump_yaml
from moeplan.manifests.yaml_positions import load_manifests

_SETTINGS = settings(max_examples=100, deadline=None)
_TRICKY = st.sampled_from("ynNoOfF0129eExX_+-.:#'\"\\|>~!&*[]{},%@`?=< \n\t")
TEXT = st.text(st.one_of(_TRICKY, st.characters(exclude_categories=["Cs"])), max_size=30)
DECIMALS = st.decimals(-(10**9), 10**9, allow_nan=False, allow_infinity=False)
LEAVES = st.none() | st.booleans() | st.integers() | TEXT | DECIMALS
VALUES = st.recursive(LEAVES, lambda c: st.lists(c, max_size=4) | st.dictionaries(TEXT, c, max_size=4), max_leaves=12)
KINDS = ("Pod", "Deployment", "CronJob", "LeaderWorkerSet", "Own")
KEYS = st.sampled_from(("spec", "template", "containers", "env", "name", "value", "command", "args", "volumes", "x"))
MANIFESTS = st.recursive(
    LEAVES, lambda c: st.lists(c, max_size=3) | st.dictionaries(KEYS, c, max_size=4), max_leaves=20
)
TABLE = parse_argument_table(
    [
        {"name": "--a", "aliases": ["-a"], "kind": "value"},
        {"name": "--b", "kind": "json"},
        {"name": "--c", "kind": "list"},
        {"name": "--d", "kind": "flag"},
    ]
)


@_SETTINGS
@given(VALUES)
def test_what_is_written_is_read_back(value: Any) -> None:
    written = dump_yaml({"value": value})
    (document,) = load_manifests(written.encode()).documents
    assert document.value == {"value": value}
    assert dump_yaml(document.value) == written


@_SETTINGS
@given(st.lists(TEXT, min_size=1))
def test_text_stays_text_for_a_yaml_1_1_reader(texts: list[str]) -> None:
    assert yaml.safe_load(dump_yaml(texts)) == texts


@_SETTINGS
@given(st.text(st.one_of(_TRICKY, st.sampled_from("ab\n  - :")), max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(InputError):
        for document in load_manifests(text.encode()).documents:
            find_pod_templates(document.value)


@_SETTINGS
@given(st.sampled_from(KINDS), MANIFESTS)
def test_any_value_is_a_manifest_or_none(kind: str, spec: Any) -> None:
    for template in find_pod_templates({"kind": kind, "metadata": spec, "spec": spec}):
        for container in (*template.containers, *template.init_containers):
            with contextlib.suppress(InputError):
                commands_of(container)


@_SETTINGS
@given(st.lists(TEXT, min_size=1))
def test_quoted_words_come_back_as_they_are(words: list[str]) -> None:
    (command,) = commands_of_script("run " + shlex.join(words))
    assert [word.text for word in command.words] == ["run", *words]
    assert all(not word.unresolved for word in command.words)


@_SETTINGS
@given(st.text(st.sampled_from("ab=$(){}[]@'\"\\ \n;&|<>#`*-"), max_size=60))
def test_any_script_is_split_or_refused(script: str) -> None:
    with contextlib.suppress(InputError):
        for command in commands_of_script(script, {"a": "b c", "b": None}):
            assert command.words


@_SETTINGS
@given(
    st.lists(st.sampled_from(("--a", "-a", "--b", "--b.x", "--c", "--d", "--no-d", "--e=1", "--", "1", "{}", "-", "")))
)
def test_each_word_belongs_to_one_argument(texts: list[str]) -> None:
    words = [Word(text, f"$[{index}]") for index, text in enumerate(texts)]
    read = read_arguments(words, TABLE)
    taken = [word for argument in read.given for word in argument.words] + list(read.positional)
    rest = [word for word in words if word not in taken]
    assert len(taken) == len(set(taken))
    assert [word.text for word in rest] in ([], ["--"])


@_SETTINGS
@given(st.integers(0, 2**23), st.sampled_from(("", "Ki", "Mi", "Gi", "Ti", "k", "M", "G", "T")))
def test_quantities_are_their_number_times_their_unit(number: int, unit: str) -> None:
    power = "kMGT".find(unit[:1].replace("K", "k")) + 1 if unit else 0
    assert parse_bytes(f"{number}{unit}") == number * (1024 if unit.endswith("i") else 1000) ** power
