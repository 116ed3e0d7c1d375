"""Hostile plugins: each is named, its fault is contained, and the others answer all the same."""

from __future__ import annotations

import struct
import time
from pathlib import Path

import pytest

from moeplan.hooks.host import Host, open_host
from moeplan.model.plan import Plan
from moeplan.model.plugin import PluginFailure
from tests.hooks.plugins import INFO, add_plugin, hook
from tests.hooks.processes import ended

GOOD_CHECK = hook("moeplan_check(plan, site)", "return (finding(),)")
CHECK = "moeplan_check(plan, site)"
LOAD_MS = 20_000
FORM = "in the form of the host"
LONG = ("import attrs", "return (attrs.evolve(finding(), message='x' * 4096),) * 3000")


def written(data: bytes, *then: str) -> tuple[str, ...]:
    """Return a hook's lines that write into every pipe that its process can write to."""
    return (
        "import os, stat",
        "for fd in range(3, 1024):",
        "    try:",
        f"        if stat.S_ISFIFO(os.fstat(fd).st_mode): os.write(fd, {data!r})",
        "    except OSError: pass",
        *then,
    )


def forged(answer: str, number: int = 1) -> tuple[str, ...]:
    """Return a hook's lines that write an answer past the process's program; it is asked for the first time."""
    return written(struct.pack(">8sIQ", b"moeplan\n", number, len(answer)) + answer.encode(), "os._exit(0)")


def put(value: str) -> tuple[str, ...]:
    """Return a hook's lines that put a value into a finding by force."""
    return (
        "one, cycle = finding(), []",
        "cycle.append(cycle)",
        f"object.__setattr__(one, 'message', {value})",
        "return (one,)",
    )


def loads(directory: Path, deadline_ms: int | None) -> tuple[list[str], dict[str, PluginFailure]]:
    """Return the plugins that load and the failures by plugin; a good one stands before and after."""
    add_plugin(directory, "a-good", GOOD_CHECK)
    add_plugin(directory, "z-good", GOOD_CHECK)
    host = open_host(deadline_ms=deadline_ms)
    return [plugin.name for plugin in host.plugins], {failure.plugin: failure for failure in host.failures}


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        ("raise RuntimeError('no GPU')", "import_failed", "RuntimeError at made_m_bad_dist.py"),
        ("import no_such_module", "import_failed", "ModuleNotFoundError"),
        ("raise SystemExit(0)", "import_failed", "SystemExit"),
        ("MOEPLAN_API = 2", "api_mismatch", "written for plugin API 2; this moeplan has API 1"),
        ("MOEPLAN_API = True", "api_mismatch", "written for plugin API bool"),
        ("del MOEPLAN_API", "api_mismatch", "written for plugin API none"),
        (hook("moeplan_chek(plan, site)", "return ()"), "misspelt_hook", "moeplan_chek; did you mean moeplan_check?"),
        ("def moeplan_check(plan, site):\n    return ()", "misspelt_hook", "moeplan_check is not marked"),
        (hook("moeplan_check(plan, sight)", "return ()"), "wrong_signature", "sight"),
        ("del moeplan_runtime", "missing_hook", "moeplan_runtime"),
        (hook("moeplan_runtime()", "return None"), "none_returned", "None"),
        (hook("moeplan_runtime()", "return {'engine': 'vllm'}"), "wrong_type", "returned dict; expected RuntimeInfo"),
        (hook("moeplan_runtime()", "raise KeyError('x\\x1b[31m')"), "raised", "KeyError"),
    ],
)
def test_a_plugin_that_does_not_load_is_named(body: str, code: str, says: str, installed: Path) -> None:
    add_plugin(installed, "m-bad", body, version="3.1")
    names, failures = loads(installed, None)
    assert names == ["a-good", "z-good"]
    assert list(failures) == ["m-bad"]
    failure = failures["m-bad"]
    assert open_host(["m-bad"], LOAD_MS).failures == (failure,)  # in a process of its own it fails the same way
    assert (failure.version, failure.hook, failure.code) == ("3.1", "load", code)
    assert says in failure.message
    assert failure.message.isprintable()


@pytest.mark.parametrize(
    ("more", "code", "says"),
    [
        ({"claims": "z-good"}, "false_name", "it gives its name as z-good, and is installed as m-bad"),
        ({"info": INFO.replace("{version!r}", "'9'")}, "false_name", "it gives its version as 9"),
        ({"profiles": ("one", "one")}, "colliding_id", "profile one is there twice"),
        ({"rules": (("T-1", "shared"), ("T-1", "other"))}, "colliding_id", "rule T-1 is there twice"),
        ({"version": "1.0!x"}, "invalid_name", "characters that are not allowed"),
    ],
)
def test_what_a_plugin_says_of_itself_is_not_believed(
    more: dict[str, object], code: str, says: str, installed: Path
) -> None:
    add_plugin(installed, "m-bad", **more)  # type: ignore[arg-type]
    names, failures = loads(installed, LOAD_MS)
    assert names == ["a-good", "z-good"]
    assert list(failures) == ["m-bad"]
    assert failures["m-bad"].code == code
    assert says in failures["m-bad"].message


def test_two_plugins_of_one_name_are_both_refused(installed: Path) -> None:
    add_plugin(installed, "m-bad", distribution="first")
    add_plugin(installed, "m-bad", distribution="second")
    names, failures = loads(installed, None)
    assert names == ["a-good", "z-good"]
    assert failures["m-bad"].code == "duplicate_name"
    assert "first, second" in failures["m-bad"].message


def test_one_id_of_two_origins_is_a_collision_and_both_are_named(installed: Path) -> None:
    add_plugin(installed, "m-bad", rules=(("T-2", "m-bad-dist"),))
    add_plugin(installed, "n-bad", rules=(("T-2", "n-bad-dist"), ("T-1", "shared")))
    names, failures = loads(installed, None)
    assert names == ["a-good", "z-good"]
    assert {name: failure.code for name, failure in failures.items()} == dict.fromkeys(
        ("m-bad", "n-bad"), "colliding_id"
    )
    assert failures["n-bad"].message == "id T-2 is claimed by m-bad, n-bad"


def test_metadata_that_cannot_be_read_is_named(installed: Path) -> None:
    add_plugin(installed, "m-bad")
    (installed / "m_bad_dist-1.0.dist-info" / "entry_points.txt").write_text("[moeplan]\nno equals sign\n", "utf-8")
    names, failures = loads(installed, None)
    assert names == ["a-good", "z-good"]
    assert failures["m-bad-dist"].code == "unreadable_metadata"


def checked(directory: Path, plan: Plan, body: str, deadline_ms: int | None = None) -> PluginFailure:
    """Return the failure of a plugin at a check that a good one before and after it answers."""
    add_plugin(directory, "a-good", GOOD_CHECK)
    add_plugin(directory, "m-bad", body)
    add_plugin(directory, "z-good", GOOD_CHECK)
    host = open_host(deadline_ms=None)
    assert host.failures == ()
    answers = Host(host.plugins, (), deadline_ms).check(plan, {"nodes": [{"name": "n1"}]})
    assert [(answer.plugin, answer.version) for answer in answers.answers] == [("a-good", "1.0"), ("z-good", "1.0")]
    assert [finding.plugin for answer in answers.answers for finding in answer.value] == ["a-good", "z-good"]
    (failure,) = answers.failures
    assert (failure.plugin, failure.version, failure.hook) == ("m-bad", "1.0", "moeplan_check")
    return failure


@pytest.mark.parametrize(
    ("lines", "code", "says"),
    [
        (("raise ValueError('a\\nb')",), "raised", "ValueError"),
        (
            (
                "class E(Exception):",
                "    def __str__(self): raise OSError",
                "raise E",
            ),
            "raised",
            "cannot be had",
        ),
        (("raise SystemExit(0)",), "raised", "SystemExit"),
        (("def f(): f()", "f()"), "raised", "RecursionError"),
        (("return None",), "none_returned", "empty tuple"),
        (("return [finding()]",), "wrong_type", "returned list; expected a tuple of PluginFinding"),
        (("return (finding(), 'x')",), "wrong_type", "a tuple of PluginFinding"),
        (("class T(tuple): pass", "return T()"), "wrong_type", "returned T"),
        (
            ("class F(PluginFinding): pass", "one = finding()", "return (F(**{k: getattr(one, k) for k in KEYS}),)"),
            "wrong_type",
            "a tuple of PluginFinding",
        ),
        (
            ("one = finding()", "object.__setattr__(one, 'severity', 'fine')", "return (one,)"),
            "malformed_result",
            "$[0].severity",
        ),
        (
            ("one = finding()", "object.__setattr__(one, 'message', 7)", "return (one,)"),
            "malformed_result",
            "$[0].message",
        ),
        (put("object()"), "malformed_result", "not JSON serializable"),
        (put("float('nan')"), "malformed_result", "no strict JSON"),
        (put("cycle"), "malformed_result", "writing the result raised"),
        (("plan.artifact.model_id = 'x'", "return ()"), "raised", "FrozenInstanceError"),
        (("site['nodes'] = ()", "return ()"), "raised", "TypeError"),
        (("site['nodes'].append(1)", "return ()"), "raised", "AttributeError"),
        (("site['nodes'][0]['name'] = 'x'", "return ()"), "raised", "TypeError"),
        (("object.__setattr__(plan.artifact, 'model_id', 'x')", "return ()"), "input_changed", "changed its input"),
        (("return (finding(),) * 10001",), "too_large", "10001 items"),
        (("return (finding('T-9'),)",), "undeclared_id", "T-9"),
        (("return (finding(plugin='z-good'),)",), "false_name", "plugin z-good"),
    ],
)
def test_a_check_that_misbehaves_is_named(
    lines: tuple[str, ...], code: str, says: str, installed: Path, plan: Plan
) -> None:
    failure = checked(installed, plan, hook(CHECK, *lines))
    assert failure.code == code
    assert says in failure.message
    assert failure.message.isprintable()


def test_many_long_answers_are_too_large(installed: Path, plan: Plan) -> None:
    assert checked(installed, plan, hook(CHECK, *LONG)).code == "too_large"


@pytest.mark.parametrize(
    ("lines", "deadline_ms", "code", "says"),
    [
        (("while True: pass",), 3000, "timed_out", "no answer within 3000 ms"),
        (("import re", "re.match('(a+)+$', 'a' * 64 + 'b')"), 3000, "timed_out", "3000 ms"),
        (("import os, time", "os.closerange(3, 1024)", "time.sleep(600)"), 3000, "timed_out", "3000 ms"),
        (("import os", "os._exit(7)"), LOAD_MS, "died", "exit status 7"),
        (("import os, signal", "os.kill(os.getpid(), signal.SIGSEGV)"), LOAD_MS, "died", "signal 11"),
        (LONG, LOAD_MS, "too_large", "8388608"),
        (forged('{"values": [[]], "hooks": [], "hooks": []}'), LOAD_MS, "malformed_result", "no strict JSON"),
        (forged('{"values": [[{"id": 7}]], "hooks": []}'), LOAD_MS, "malformed_result", "$[0].plugin: key missing"),
        (forged('{"values": [[], []], "hooks": []}'), LOAD_MS, "malformed_result", FORM),
        (forged('{"code": "raised", "message": "", "issues": []}'), LOAD_MS, "raised", "no reason given"),
        (forged('{"code": "raised", "message": "x", "issues": [{}]}'), LOAD_MS, "malformed_result", "$[0].path"),
        (forged('{"code": "fine", "message": "x", "issues": []}'), LOAD_MS, "malformed_result", FORM),
        (forged('[]'), LOAD_MS, "malformed_result", FORM),
        (forged('{"values": [[]], "hooks": []}', 2), LOAD_MS, "malformed_result", "no answer to its question"),
        (written(b"noise" * 9, "return ()"), LOAD_MS, "malformed_result", "no answer to its question"),
        (("while True:", *("    " + line for line in written(b"x" * 65536))), LOAD_MS, "malformed_result", "no answer"),
        (("import os, time", "os.kill(os.getppid(), 9)", "time.sleep(600)"), LOAD_MS, "died", "watches it"),
        (("import os, time", "os.killpg(os.getpgid(os.getppid()), 9)", "time.sleep(600)"), LOAD_MS, "died", "watches"),
    ],
)  # fmt: skip
def test_in_a_process_of_its_own_nothing_escapes(
    lines: tuple[str, ...], deadline_ms: int, code: str, says: str, installed: Path, plan: Plan
) -> None:
    began = time.monotonic()
    failure = checked(installed, plan, hook(CHECK, *lines), deadline_ms)
    assert failure.code == code
    assert says in failure.message
    assert time.monotonic() - began < 30


def test_a_plugin_that_hangs_while_it_is_imported_is_named(installed: Path) -> None:
    add_plugin(installed, "m-bad", "import time\ntime.sleep(600)")
    names, failures = loads(installed, 3000)
    assert names == ["a-good", "z-good"]
    assert failures["m-bad"].code == "timed_out"


def test_what_a_plugin_prints_goes_nowhere_and_what_it_leaves_running_is_ended(
    installed: Path, plan: Plan, capfd: pytest.CaptureFixture[str]
) -> None:
    body = "import os, subprocess\nprint('noise', flush=True)\n" + hook(
        CHECK,
        "os.write(1, b'noise')",
        f"open({str(installed / 'pid')!r}, 'w').write(str(subprocess.Popen(['sleep', '600']).pid))",
        "return (finding(),)",
    )
    add_plugin(installed, "m-loud", body)
    with open_host(deadline_ms=LOAD_MS) as host:
        answer = host.check(plan, {}).only()
    assert [finding.id for finding in answer.value] == ["T-1"]
    assert capfd.readouterr() == ("", "")
    assert ended(int((installed / "pid").read_text()))
