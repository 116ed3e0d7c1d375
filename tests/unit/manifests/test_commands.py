"""Commands of containers and scripts: words, where they come from, and what is not known."""

from __future__ import annotations

from typing import Any

import pytest

from moeplan.errors import InputError, Issue
from moeplan.manifests.commands import Command, commands_of, commands_of_script
from moeplan.manifests.containers import Container, EnvVar, read_containers
from moeplan.manifests.environment import expand, resolve_environment


def container(**spec: Any) -> Container:
    faults: list[Issue] = []
    (found,) = read_containers({"containers": [spec]}, "containers", "$.spec", faults)
    assert faults == []
    return found


def texts(command: Command) -> list[str]:
    return [word.text for word in command.words]


def lines(script: str, **variables: str | None) -> list[list[str]]:
    return [texts(command) for command in commands_of_script(script, variables)]


ENV = [
    {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    {"name": "TP", "value": "8"},
    {"name": "URL", "value": "http://$(POD_IP):$(PORT)/$(TP)"},
    {"name": "EXTRA", "value": "--a 'b"},
]


def test_command_and_args_with_references() -> None:
    (command,) = commands_of(
        container(
            env=ENV, command=["/bin/vllm", "serve"], args=["--tp=$(TP)", "$(URL)", "$$(TP)", "$(TP", "$TP", "$(X)"]
        )
    )
    assert texts(command) == [
        "/bin/vllm",
        "serve",
        "--tp=8",
        "http://$(POD_IP):$(PORT)/8",
        "$(TP)",
        "$(TP",
        "$TP",
        "$(X)",
    ]
    words = command.after("vllm", "serve")
    assert words is not None
    assert [(word.used, word.unresolved) for word in words] == [
        (("TP",), ()),
        (("URL", "TP"), ("POD_IP", "PORT")),
        ((), ()),
        ((), ()),
        ((), ()),
        ((), ("X",)),
    ]
    assert words[0].path == "$.spec.containers[0].args[0]"
    assert command.after("vllm", "bench") is None


def test_args_alone_leave_the_program_open() -> None:
    (command,) = commands_of(container(args=["--port", "1"]))
    assert (texts(command), command.has_program) == (["--port", "1"], False)
    assert commands_of(container(name="x")) == ()


def test_a_script_in_a_container() -> None:
    script = "set -e\nexport A=1\nB=2 exec vllm serve /m \\\n  --tp $(TP) --host $POD_IP --x ${NONE:-1} $EXTRA\n"
    found = commands_of(container(env=ENV, command=["/bin/bash", "-o", "pipefail", "-lc"], args=[script]))
    assert [texts(c)[:1] for c in found] == [["set"], ["vllm"]]
    serve = found[1]
    assert texts(serve)[3:] == ["--tp", "8", "--host", "$POD_IP", "--x", "${NONE:-1}", "--a", "'b"]
    assert serve.environment == {"A": "1", "B": "2"}
    tp, host, default, extra = (serve.words[i] for i in (4, 6, 8, 10))
    assert (tp.path, tp.used, tp.line, tp.offset) == ("$.spec.containers[0].args[0]", ("TP",), 3, script.index("$(TP)"))
    assert host.unresolved == ("POD_IP",)
    assert default.unresolved == ("NONE",)
    assert extra.used == ("EXTRA",)


def test_a_script_that_an_env_variable_holds() -> None:
    (command,) = commands_of(
        container(env=[{"name": "S", "value": "exec vllm serve"}], command=["sh", "-c"], args=["$(S)"])
    )
    assert texts(command) == ["vllm", "serve"]


def test_positional_parameters_reach_the_script() -> None:
    (command,) = commands_of(container(command=["sh", "-c", 'exec "$@" --z', "--"], args=["vllm", "a b"]))
    assert texts(command) == ["vllm", "a b", "--z"]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("a 'b c' \"d $X\" e\\ f", [["a", "b c", "d 1 2", "e f"]]),
        ("a $X \"$X\"x ''", [["a", "1", "2", "1 2x", ""]]),
        ("a && b || c; d | e & f", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("a # b\n#c\nd#e", [["a"], ["d#e"]]),
        ("a > f 2>&1 < g b &>> h", [["a", "b"]]),
        ("serve <dir>/Qwen3 --x=<MODEL_DIR> <in >out", [["serve", "<dir>/Qwen3", "--x=<MODEL_DIR>"]]),
        ("a <in>out b <<EOF\ntext\nEOF\nc <x>", [["a", "b"], ["c", "<x>"]]),
        ("if a; then b; else c; fi", [["a"], ["b"], ["c"]]),
        ("Y=3; Y+=4\na $Y ${Y}z", [["a", "34", "34z"]]),
        ("A=(1 '2 3') ; A+=(4)\na ${A[0]} \"${A[@]}\"", [["a", "${A[0]}", "1", "2 3", "4"]]),
        ('A=()\na "${A[@]}" b', [["a", "b"]]),
        ("cat <<E\nvllm\nE\na", [["cat"], ["a"]]),
        ("sh -c 'bash -ec \"a b\"'", [["a", "b"]]),
        ("env A=1 nohup a", [["a"]]),
        ("a \"\\$X \\q\" '\\'", [["a", "$X \\q", "\\"]]),
        ("a `b c` $(d 'e)' f) ${X%x}", [["a", "`b c`", "$(d 'e)' f)", "${X%x}"]]),
        ("", []),
    ],
)
def test_scripts_are_split_as_a_shell_does(script: str, words: list[list[str]]) -> None:
    assert lines(script, X="1 2") == words


def test_what_only_running_would_tell_is_marked() -> None:
    (command,) = commands_of_script("a $(b) `c` $1 ${D} $E", {"E": None})
    assert [word.unresolved for word in command.words[1:]] == [("$(b)",), ("`c`",), ("$1",), ("D",), ("E",)]
    (after,) = commands_of_script("H=$(hostname)\nserve --h $H")
    assert after.words[2].unresolved == ("H",)
    (own,) = commands_of_script("H=$(hostname) serve")
    assert own.environment == {"H": None}


@pytest.mark.parametrize(
    ("script", "place"),
    [("a\nb 'c", "line 2 column 3"), ('a "b', "line 1 column 3"), ("a $(b", "line 1 column 3"), ("A=(1", "array")],
)
def test_what_never_ends_is_refused(script: str, place: str) -> None:
    with pytest.raises(InputError, match=place) as caught:
        commands_of_script(script)
    assert caught.value.issues[0].code == "invalid_script"


def test_growth_is_bounded() -> None:
    with pytest.raises(InputError) as caught:
        commands_of_script("A=xxxxxxxxxx\n" + "A=$A$A$A$A\n" * 40)
    assert caught.value.issues[0].code == "script_too_long"
    with pytest.raises(InputError) as caught:
        commands_of_script("A=(x y)\n" + 'A=("${A[@]}" "${A[@]}")\n' * 60)
    assert caught.value.issues[0].code == "script_too_long"
    env = [EnvVar("A0", "xxxxxxxxxx", None, "$")]
    env += [EnvVar(f"A{i}", f"$(A{i - 1})" * 10, None, f"$[{i}]") for i in range(1, 30)]
    with pytest.raises(InputError) as caught:
        resolve_environment(env)
    assert caught.value.issues[0].code == "expansion_too_long"


def test_hostile_texts_are_read_in_linear_time() -> None:
    many = "$(" * 200_000
    assert expand(many, {}).text == many
    assert lines("a " * 100_000)[0][0] == "a"
    assert lines("env " * 100_000) == []


def test_of_a_variable_only_the_parts_that_are_not_known_are_not_known() -> None:
    (command,) = commands_of_script('C="--tp 16 --node-rank ${RANK} --host $(hostname -i) $MORE"\nserve m $C --port 80')
    assert [(word.text, word.unresolved) for word in command.words[2:]] == [
        ("--tp", ()),
        ("16", ()),
        ("--node-rank", ()),
        ("${RANK}", ("RANK",)),
        ("--host", ()),
        ("$(hostname -i)", ("$(hostname -i)",)),
        ("$MORE", ("MORE",)),
        ("--port", ()),
        ("80", ()),
    ]


def test_of_an_array_only_the_items_that_are_not_known_are_not_known() -> None:
    (command,) = commands_of_script('A=(--model "$1" --tp 8)\nA+=(--url "http://$H:80")\nserve "${A[@]}"')
    assert [(word.text, bool(word.unresolved)) for word in command.words[1:]] == [
        ("--model", False),
        ("$1", True),
        ("--tp", False),
        ("8", False),
        ("--url", False),
        ("http://$H:80", True),
    ]


def test_a_variable_with_an_unknown_part_is_not_known_to_the_environment() -> None:
    (command,) = commands_of_script("export URL=http://$HOST:80 TP=8\nserve m")
    assert command.environment == {"URL": None, "TP": "8"}
