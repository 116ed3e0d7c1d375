"""A plugin's process: one import for all questions, nothing shared, and nothing left when the host ends."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest

from moeplan.hooks.host import Host, open_host, start_plugins
from moeplan.model.plan import Plan
from tests.hooks.plugins import add_plugin, hook
from tests.hooks.processes import ended

MS = 20_000
OWNS = "moeplan_owns_manifest(manifest)"


def noted(directory: Path, what: str) -> str:
    """Return a line that notes a process's number at import in a file of the directory."""
    return f"import os\nopen({str(directory / what)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"


def pids(directory: Path, what: str) -> list[int]:
    return [int(line) for line in (directory / what).read_text().split()]


def says(host: Host, *manifests: dict[str, object]) -> dict[str, tuple[bool | None, ...]]:
    return {answer.plugin: answer.value for answer in host.owners(manifests).answers}


def test_a_plugin_is_imported_once_for_all_it_is_asked(installed: Path, plan: Plan) -> None:
    body = noted(installed, "pid") + hook(OWNS, "return 'a' in manifest") + hook("moeplan_check()", "return ()")
    add_plugin(installed, "a", body)
    with open_host(deadline_ms=MS) as host:
        assert says(host, {"a": 1}, {"b": 1}) == {"a": (True, False)}
        assert says(host, {"b": 1}) == {"a": (False,)}
        assert host.check(plan, {}).only().value == ()
    assert len(pids(installed, "pid")) == 1


def test_plugins_are_imported_side_by_side(installed: Path) -> None:
    for name in ("a", "b", "c"):
        add_plugin(installed, name, "import time\ntime.sleep(2)\n")
    began = time.monotonic()
    with open_host(deadline_ms=MS) as host:
        assert [plugin.name for plugin in host.plugins] == ["a", "b", "c"]
    assert time.monotonic() - began < 5.5  # one after the other would be 6 seconds and more


def test_what_a_plugin_changes_in_a_module_no_other_plugin_sees_but_it_does_itself(installed: Path) -> None:
    (installed / "made_library.py").write_text("seen = []\n")
    body = hook(OWNS, "import made_library", "made_library.seen.append(1)", "return len(made_library.seen) > 1")
    add_plugin(installed, "a", body)
    add_plugin(installed, "b", body)
    with open_host(deadline_ms=MS) as host:
        assert says(host, {}) == {"a": (False,), "b": (False,)}
        assert says(host, {}) == {"a": (True,), "b": (True,)}  # its own state is its own affair: documented


def test_a_wrong_answer_after_a_right_one_is_named_and_the_next_question_is_asked(installed: Path) -> None:
    body = "calls = []\n" + hook(OWNS, "calls.append(1)", "return 'yes' if len(calls) == 2 else True")
    add_plugin(installed, "a", body)
    with open_host(deadline_ms=MS) as host:
        assert says(host, {}) == {"a": (True,)}
        (failure,) = host.owners([{}]).failures
        assert (failure.code, failure.hook) == ("wrong_type", "moeplan_owns_manifest")
        assert says(host, {}) == {"a": (True,)}


def test_a_fault_at_one_manifest_is_a_failure_of_the_plugin_at_all(installed: Path) -> None:
    add_plugin(installed, "a", hook(OWNS, "return manifest['kind'] == 'Job'"))
    add_plugin(installed, "b", hook(OWNS, "return True"))
    with open_host(deadline_ms=MS) as host:
        answers = host.owners([{"kind": "Job"}, {}])
    assert [(answer.plugin, answer.value) for answer in answers.answers] == [("b", (True, True))]
    assert [(failure.plugin, failure.code) for failure in answers.failures] == [("a", "raised")]


def test_a_plugin_that_died_is_started_again_for_the_next_question(installed: Path) -> None:
    add_plugin(installed, "a", noted(installed, "pid") + hook(OWNS, "return True if manifest else os._exit(9)"))
    with open_host(deadline_ms=MS) as host:
        (failure,) = host.owners([{}]).failures
        assert (failure.code, failure.message[:40]) == ("died", "its process ended with exit status 9 bef")
        assert says(host, {"x": 1}) == {"a": (True,)}
    first, second = pids(installed, "pid")
    assert first != second


@pytest.mark.parametrize(
    "kill",
    [
        ("os.kill(launcher, 9)", "os.kill(watcher, 9)"),
        ("os.killpg(os.getpgid(watcher), 9)",),
        ("os.kill(watcher, 9)",),
    ],
)
def test_who_ends_the_processes_above_it_ends_no_other_plugin(kill: tuple[str, ...], installed: Path) -> None:
    above = (
        "import os, time",
        "watcher = os.getppid()",
        "launcher = int(open(f'/proc/{watcher}/stat').read().rsplit(')', 1)[1].split()[1])",
    )
    add_plugin(installed, "a", hook(OWNS, *above, *kill, "time.sleep(600)"))
    add_plugin(installed, "b", noted(installed, "pid") + hook(OWNS, "return True"))
    with open_host(deadline_ms=MS) as host:
        for _ in range(2):
            answers = host.owners([{}])
            assert [(failure.plugin, failure.code) for failure in answers.failures] == [("a", "died")]
            assert [(answer.plugin, answer.value) for answer in answers.answers] == [("b", (True,))]
    (only,) = pids(installed, "pid")  # its process was never started again
    assert ended(only)


def test_a_question_that_is_never_read_does_not_block(installed: Path) -> None:
    add_plugin(installed, "a", hook(OWNS, "import os, time", "os.kill(os.getpid(), 19)", "return True"))
    with open_host(deadline_ms=MS) as host:
        slow = Host(host.plugins, (), 1000, host.sessions)
        assert [failure.code for failure in slow.owners([{"text": "x" * 3_000_000}]).failures] == ["timed_out"]
        add = slow.owners([{"text": "x" * 3_000_000}] * 2)
        assert [failure.code for failure in add.failures] == ["timed_out"]


def test_a_process_of_a_plugin_has_no_files_but_its_pipes(installed: Path) -> None:
    kept = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(kept, True)
    body = hook(
        OWNS, "import os", "raise ValueError(sorted(os.readlink(f'/dev/fd/{fd}')[:4] for fd in range(64) if here(fd)))"
    )
    add_plugin(installed, "a", "import os\ndef here(fd): return os.path.lexists(f'/proc/self/fd/{fd}')\n" + body)
    try:
        with open_host(deadline_ms=MS) as host:
            (failure,) = host.owners([{}]).failures
    finally:
        os.close(kept)
    assert failure.message.endswith("['/dev', '/dev', '/dev', 'pipe', 'pipe']")


def test_plugins_load_while_the_host_does_something_else(installed: Path) -> None:
    add_plugin(installed, "a", "import time\ntime.sleep(2)\n" + hook(OWNS, "return True"))
    began = time.monotonic()
    started = start_plugins(deadline_ms=MS, expects=["moeplan_lint"], preload=["moeplan.manifests.versions"])
    assert time.monotonic() - began < 1.5
    time.sleep(2)
    with started.host() as host:
        assert says(host, {}) == {"a": (True,)}


def test_what_is_started_and_never_asked_ends_too(installed: Path) -> None:
    add_plugin(installed, "a", noted(installed, "pid"))
    started = start_plugins(deadline_ms=MS)
    while not (installed / "pid").exists() or not pids(installed, "pid"):
        time.sleep(0.01)
    del started
    gc.collect()
    (pid,) = pids(installed, "pid")
    assert ended(pid, seconds=0.5)


def test_a_module_to_preload_that_does_not_exist_harms_nothing(installed: Path) -> None:
    add_plugin(installed, "a")
    with open_host(deadline_ms=MS, preload=["moeplan.no_such_room"]) as host:
        assert [plugin.name for plugin in host.plugins] == ["a"]


@pytest.mark.parametrize("way", ["close", "with", "collected"])
def test_nothing_runs_and_no_file_is_open_after_the_host(way: str, installed: Path) -> None:
    detached = (
        "import os, time",
        "if os.fork() == 0:",
        "    os.setsid()",
        "    if os.fork() == 0:",
        f"        open({str(installed / 'pid')!r}, 'a').write(f'{{os.getpid()}}\\n')",
        "        time.sleep(600)",
        "    os._exit(0)",
        f"while not os.path.exists({str(installed / 'pid')!r}) or not os.path.getsize({str(installed / 'pid')!r}):",
        "    time.sleep(0.01)",
        "return True",
    )
    add_plugin(installed, "a", noted(installed, "own") + hook(OWNS, *detached))
    before = os.listdir("/dev/fd")
    host = open_host(deadline_ms=MS)
    assert says(host, {}) == {"a": (True,)}
    if way == "close":
        host.close()
        host.close()
    elif way == "with":
        with host:
            pass
    else:
        del host
        gc.collect()
    for pid in (*pids(installed, "own"), *pids(installed, "pid")):
        assert ended(pid, seconds=0.5)
    assert os.listdir("/dev/fd") == before


def test_a_closed_host_says_so(installed: Path) -> None:
    add_plugin(installed, "a", hook(OWNS, "return True"))
    with open_host(deadline_ms=MS) as host:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        host.owners([{}])


SCRIPT = """
import os, signal, sys
from moeplan.hooks.host import open_host
sys.path.insert(0, sys.argv[1])
host = open_host(["a"])
assert [plugin.name for plugin in host.plugins] == ["a"], host.failures
"""


@pytest.mark.parametrize(
    ("last", "status"),
    [
        ("", 0),
        ("raise SystemExit(3)", 3),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("os._exit(4)", 4),
    ],
)
def test_plugins_end_with_the_interpreter_however_it_ends(last: str, status: int, installed: Path) -> None:
    add_plugin(installed, "a", noted(installed, "pid"))
    program = [sys.executable, "-W", "error", "-c", SCRIPT + last, str(installed)]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")
    (pid,) = pids(installed, "pid")
    assert ended(pid)


def test_a_forked_copy_of_the_host_ends_nothing(installed: Path) -> None:
    add_plugin(installed, "a", hook(OWNS, "return True"))
    last = dedent("""
        if os.fork() == 0:
            sys.exit(0)
        os.wait()
        assert host.owners([{}]).only().value == (True,)
    """)
    program = [sys.executable, "-W", "error", "-c", SCRIPT + last, str(installed)]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_more_processes_or_files_is_a_failure_of_each_plugin(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> tuple[int, int]:
        raise OSError(24, "Too many open files")

    add_plugin(installed, "a")
    add_plugin(installed, "b")
    monkeypatch.setattr(os, "pipe", fail)
    with open_host(deadline_ms=MS) as host:
        pass
    assert [(failure.plugin, failure.code) for failure in host.failures] == [("a", "died"), ("b", "died")]
    assert host.failures[0].message == "its process could not be started: Too many open files"


def test_more_plugins_than_start_at_once(installed: Path) -> None:
    names = [f"p{number:02}" for number in range(35)]
    for name in names:
        add_plugin(installed, name)
    with open_host(deadline_ms=MS) as host:
        assert [plugin.name for plugin in host.plugins] == names
