"""Arguments of an engine: forms, kinds, repetitions, what is wrong and what is unknown."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from moeplan.errors import InputError
from moeplan.manifests.argument_table import parse_argument_table
from moeplan.manifests.arguments import Arguments, read_arguments
from moeplan.manifests.commands import Word, commands_of_script
from moeplan.manifests.versions import parse_version

TABLE = parse_argument_table(
    [
        {"name": "--tensor-parallel-size", "aliases": ["-tp"], "kind": "value"},
        {"name": "--speculative-config", "aliases": ["--spec", "-sc"], "kind": "json", "versions": ">=0.9,<0.30"},
        {"name": "--compilation-config", "aliases": ["-O"], "kind": "json"},
        {"name": "--enable-prefix-caching", "kind": "flag"},
        {"name": "--served-model-name", "kind": "list"},
    ]
)


def read(*texts: str) -> Arguments:
    return read_arguments([Word(text, f"$.args[{i}]") for i, text in enumerate(texts)], TABLE)


@pytest.mark.parametrize(
    ("texts", "name", "value"),
    [
        (("--tensor-parallel-size", "8"), "--tensor-parallel-size", "8"),
        (("--tensor_parallel_size=8",), "--tensor-parallel-size", "8"),
        (("-tp", "-1"), "--tensor-parallel-size", "-1"),
        (("-tp=8",), "--tensor-parallel-size", "8"),
        (("--enable-prefix-caching",), "--enable-prefix-caching", True),
        (("--no-enable_prefix_caching",), "--enable-prefix-caching", False),
        (("--served-model-name", "a", "b", "--x"), "--served-model-name", ("a", "b")),
        (("--spec", '{"a": 0.5, "b": [1]}'), "--speculative-config", {"a": Decimal("0.5"), "b": [1]}),
        (('-sc={"a b": "x=y"}',), "--speculative-config", {"a b": "x=y"}),
        (("-O3",), "--compilation-config", 3),
    ],
)
def test_forms(texts: tuple[str, ...], name: str, value: Any) -> None:
    argument = read(*texts).given[0]
    assert (argument.name, argument.value, argument.problem) == (name, value, None)
    assert argument.known
    assert argument.words[0].path == "$.args[0]"


def test_repeated_arguments_are_all_kept_and_the_last_holds() -> None:
    arguments = read("-tp", "4", "m", "--tensor-parallel-size=8", "--", "--x")
    assert [a.value for a in arguments.all("--tensor-parallel-size")] == ["4", "8"]
    last = arguments.last("--tensor-parallel-size")
    assert last is not None
    assert last.value == "8"
    assert arguments.last("--spec") is None
    assert [word.text for word in arguments.positional] == ["m", "--x"]


def test_dotted_arguments_make_one_value() -> None:
    arguments = read("--spec", '{"z": 1}', "--spec.a.b", "2", "--spec.a.c=x", "--spec.l+", "1,2", "--spec.l+", "x")
    assert arguments.json("--speculative-config") == {"a": {"b": 2, "c": "x"}, "l": ["1", "2", "x"]}
    last = arguments.last("--speculative-config")
    assert last is not None
    assert last.value == {"z": 1}
    assert read("--spec", '{"z": 1}').json("--speculative-config") == {"z": 1}
    assert read().json("--speculative-config") is None
    assert read("--enable-prefix-caching.x", "1").given[0].kind == "unknown"


# What vLLM 0.32.0's FlexibleArgumentParser made of the same words, with --speculative-config (-sc) as json.loads.
@pytest.mark.parametrize(
    ("texts", "value"),
    [
        (("-sc", '{"method": "mtp", "a": 1}', "-sc.a", "2"), {"a": 2}),
        (("-sc.a", "2", "-sc", '{"method": "mtp", "a": 1}'), {"a": 2}),
        (("-sc.b", "2", "--speculative-config.a", "1"), {"a": 1}),
        (("--speculative-config.a", "1", "--speculative.b", "2"), {"b": 2}),
        (("-sc.a", "1", "--speculative_config.b", "2", "-sc.c", "3"), {"b": 2}),
        (("-sc.l+", "1,2", "-sc.l+", "x"), {"l": ["1", "2", "x"]}),
        (("-sc.l+", "[1,2]"), {"l": ["[1", "2]"]}),
        (("-sc.l", "[1]", "-sc.l", "[2]"), {"l": [1, 2]}),
        (("-sc.l", "5", "-sc.l+", "7"), {"l": ["7"]}),
        (("-sc.d", '{"a": 1}', "-sc.d.b", "2"), {"d": {"a": 1, "b": 2}}),
        (("-sc.d", '{"a": 1}', "-sc.d", '{"b": 2}'), {"d": {"a": 1, "b": 2}}),
        (("-sc.n", "80g"), {"n": 80_000_000_000}),
        (("-sc.n", "1.5k"), {"n": 1500}),
        (("-sc.n", "2K"), {"n": 2048}),
        (("-sc.n", "2.5K"), {"n": "2.5K"}),
    ],
)
def test_dotted_arguments_as_vllm_reads_them(texts: tuple[str, ...], value: object) -> None:
    assert read(*texts).json("--speculative-config") == value


def test_a_name_cut_short_is_taken_where_one_option_begins_so() -> None:
    arguments = read("--tensor-parallel", "8", "--no-enable-pref", "--spec", "{}", "--speculative.method", "mtp")
    assert [a.name for a in arguments.given] == [
        "--tensor-parallel-size", "--enable-prefix-caching", "--speculative-config", "--speculative-config"
    ]  # fmt: skip
    assert [a.value for a in arguments.given] == ["8", False, {}, "mtp"]
    assert [a.written for a in arguments.given[:2]] == ["--tensor-parallel", "--no-enable-pref"]


def test_a_name_cut_too_short_is_unknown() -> None:
    several = read("--s", "1").given[0]
    assert not several.known
    assert set(several.near) == {"--speculative-config", "--spec", "--served-model-name"}
    assert not read("--", "--t").given
    assert not read("--tensor-parallel-sizes", "8").given[0].known
    assert not read("--x.y", "8").given[0].known


@pytest.mark.parametrize(
    ("texts", "code", "path"),
    [
        (("-tp",), "missing_value", "$.args[0]"),
        (("-tp", "--x"), "missing_value", "$.args[0]"),
        (("--served-model-name",), "missing_value", "$.args[0]"),
        (("--enable-prefix-caching=true",), "flag_with_value", "$.args[0]"),
        (("--spec", "{'a': 1}"), "invalid_json", "$.args[1]"),
        (("--spec", '{"a": 1, "a": 2}'), "invalid_json", "$.args[1]"),
        (("--spec", '{"a": NaN}'), "invalid_json", "$.args[1]"),
        (("--spec", "[" * 100_000), "invalid_json", "$.args[1]"),
        (("--spec", "9" * 5000), "invalid_json", "$.args[1]"),
    ],
)
def test_what_is_wrong_is_told_in_the_argument(texts: tuple[str, ...], code: str, path: str) -> None:
    argument = read(*texts).given[0]
    assert argument.value is None
    assert argument.problem is not None
    assert (argument.problem.code, argument.problem.path) == (code, path)


def test_json_faults_name_the_character() -> None:
    problem = read("--spec", '{"a": x}').given[0].problem
    assert problem is not None
    assert "at character 7" in problem.message


def test_unknown_arguments_are_kept_with_what_they_are_near_to() -> None:
    arguments = read("--tensor-paralel-size", "8", "--zzz", "--no-tensor-parallel-size", "-q")
    assert [(a.name, a.value) for a in arguments.unknown] == [
        ("--tensor-paralel-size", "8"),
        ("--zzz", None),
        ("--no-tensor-parallel-size", None),
        ("-q", None),
    ]
    assert arguments.unknown[0].near[0] == "--tensor-parallel-size"
    assert arguments.unknown[1].near == ()


def test_what_is_not_known_is_not_guessed() -> None:
    (command,) = commands_of_script('vllm serve --spec "$S" -tp $T --spec.method=$M', {"T": "8", "M": None})
    words = command.after("vllm", "serve")
    assert words is not None
    arguments = read_arguments(words, TABLE)
    spec, tp, method = arguments.given
    assert (spec.value, spec.unresolved, spec.problem) == (None, ("S",), None)
    assert (tp.value, tp.used, tp.unresolved) == ("8", ("T",), ())
    assert (method.value, method.unresolved) == (None, ("M",))
    assert arguments.json("--speculative-config") is None


def test_versions_of_an_argument() -> None:
    spec = TABLE.find("--speculative_config")
    assert spec is not None
    assert [spec.exists_in(parse_version(v)) for v in ("0.8.5", "0.20", "0.30.0", None)] == [False, True, False, None]


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ({"name": "--a", "kind": "x"}, "invalid_value"),
        ({"name": "a", "kind": "flag"}, "invalid_value"),
        ({"name": "--a_b", "kind": "flag"}, "invalid_value"),
        ({"name": "--a", "kind": "flag", "type": "x"}, "unknown_key"),
        ({"name": "--a", "kind": "flag", "versions": "~=1"}, "invalid_range"),
        ({"name": "--a", "kind": "flag", "aliases": ["--a"]}, "duplicate_name"),
    ],
)
def test_a_table_is_checked(row: dict[str, Any], code: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_argument_table([row])
    assert caught.value.issues[0].code == code
