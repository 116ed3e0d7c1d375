"""``moeplan diagnose`` with plugins that are installed: what it prints, its exit codes, memory, and healthy logs."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.hooks.plugins import add_plugin, hook

SIGNATURES = """
SIGNATURES = (
    signature(literals=("Failed to find remote engine_id",), expectation="informs", cause="the peer is not there"),
    signature(id="T-2", literals=("running the draft eagerly",), severity="warning"),
    signature(id="T-3", literals=("Available routes are",), expectation="must_be_present", severity="info"),
    signature(id="T-4", literals=(), pattern=r"larger than the number of available GPUs \\\\(\\\\d+\\\\) in this node",
              expectation="informs"),
)
"""
RULES = tuple((f"T-{number}", "shared") for number in range(1, 5))


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """Return a directory with a plugin that knows four lines."""
    directory = tmp_path / "plugins"
    directory.mkdir()
    body = SIGNATURES.replace("\\\\", "\\") + hook("moeplan_log_signatures()", "return SIGNATURES")
    add_plugin(directory, "vllm-made", body, rules=RULES)
    return directory


def run(plugins: Path, *words: str, stdin: bytes = b"", command: str = "diagnose") -> tuple[int, str, str]:
    """Return exit code, standard output and standard error."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "moeplan.cli.main", command, *words],
        input=stdin,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(plugins)},
        cwd=plugins.parent,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def told(plugins: Path, *words: str, stdin: bytes = b"") -> tuple[int, dict[str, Any]]:
    code, out, _ = run(plugins, *words, "--plugin", "vllm-made", "--json", stdin=stdin)
    value: dict[str, Any] = json.loads(out)
    return code, value


HEALTHY = b"INFO Available routes are:\nINFO ready\n"
BROKEN = HEALTHY + b"\x1b[31mERROR\x1b[0m Failed to find remote \x1b[1mengine_id\x1b[0m 7\r\n" * 3


def test_findings_and_what_is_expected_as_json(plugins: Path) -> None:
    (plugins.parent / "a.log").write_bytes(BROKEN)
    code, value = told(plugins, "a.log")
    assert code == 1
    assert value["outcome"] == "errors"
    (finding,) = value["findings"]
    wanted = {"id": "T-1", "plugin": "vllm-made", "severity": "error", "file": "a.log", "count": 3, "firstLine": 3}
    assert wanted.items() <= finding.items()
    assert finding["excerpt"] == "ERROR Failed to find remote engine_id 7"
    assert (finding["cause"], finding["remedy"]) == ("the peer is not there", "r")
    assert finding["sources"] == [{"source": "a document", "locator": "section 1"}]
    shown = subprocess.run(["sha256sum", "a.log"], cwd=plugins.parent, capture_output=True, text=True, check=True)
    assert finding["evidence"]["log"] == "sha256:" + shown.stdout.split()[0]
    assert [(row["id"], row["expectation"], row["count"], row["holds"]) for row in value["expected"]] == [
        ("T-2", "must_be_zero", 0, True),
        ("T-3", "must_be_present", 1, True),
    ]
    assert value["logs"] == [
        {"file": "a.log", "size": len(BROKEN), "digest": finding["evidence"]["log"], "lines": 5, "cutLines": 0}
    ]


def test_people_read_the_same(plugins: Path) -> None:
    code, out, err = run(plugins, "-", "--plugin", "vllm-made", stdin=BROKEN)
    assert code == 1
    assert out.splitlines()[:3] == [
        "-:3: error: T-1 (vllm-made), 3 lines",
        "  line:     ERROR Failed to find remote engine_id 7",
        "  cause:    the peer is not there",
    ]
    assert out.splitlines()[-2].split() == ["T-3:", "1", "or", "more", "1", "yes", "vllm-made", "-:1"]
    assert out.splitlines()[-1] == "1 kind(s) of line that must not be there: none is"
    assert err == ""
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("log", "code", "outcome"),
    [
        (HEALTHY, 0, "clear"),
        (b"INFO nothing known\n", 0, "clear"),
        (HEALTHY + b"WARNING running the draft eagerly\n", 1, "errors"),
        (b"larger than the number of available GPUs (4) in this node", 1, "errors"),
        (b"", 3, "nothing_judged"),
    ],
)
def test_exit_codes(plugins: Path, log: bytes, code: int, outcome: str) -> None:
    got, value = told(plugins, "-", stdin=gzip.compress(log))
    assert (got, value["outcome"]) == (code, outcome)


def test_a_missing_line_is_noted_and_no_error(plugins: Path) -> None:
    code, _, err = run(plugins, "-", "--plugin", "vllm-made", stdin=b"INFO ready\n")
    assert code == 0
    assert "T-3: no line says so, which proves nothing" in err


def test_without_signatures_nothing_is_judged(tmp_path: Path) -> None:
    directory = tmp_path / "plugins"
    directory.mkdir()
    add_plugin(directory, "vllm-mute")
    code, out, err = run(directory, "-", "--plugin", "vllm-mute", "--json", stdin=HEALTHY)
    assert code == 3
    assert json.loads(out)["signatures"] == 0
    assert "nothing was judged" in err


def test_a_plugin_that_fails_is_named_and_the_rest_goes_on(plugins: Path) -> None:
    add_plugin(plugins, "vllm-bad", hook("moeplan_log_signatures()", "raise RuntimeError('no')"), rules=RULES)
    words = [word for name in ("vllm-made", "vllm-bad") for word in ("--plugin", name)]
    code, out, err = run(plugins, "-", *words, "--json", stdin=HEALTHY)
    assert code == 3
    assert [(one["plugin"], one["code"]) for one in json.loads(out)["failures"]] == [("vllm-bad", "raised")]
    assert "error: [raised] plugin vllm-bad 1.0: moeplan_log_signatures" in err
    code, out, _ = run(plugins, "-", *words, "--json", stdin=BROKEN)
    assert (code, [one["id"] for one in json.loads(out)["findings"]]) == (1, ["T-1"])


def test_a_pattern_that_never_ends_is_named_and_the_rest_goes_on(plugins: Path) -> None:
    slow = hook("moeplan_log_signatures()", "return (signature(literals=(), pattern=r'(?=a)(a+)+\\1b$'),)")
    add_plugin(plugins, "vllm-slow", slow, rules=RULES)
    log = b"a" * 4000 + b"!\n" + BROKEN
    code, out, err = run(plugins, "-", "--plugin", "vllm-made", "--plugin", "vllm-slow", "--json", stdin=log)
    assert code == 1
    value = json.loads(out)
    assert [one["id"] for one in value["findings"]] == ["T-1"]
    assert [(one["plugin"], one["code"]) for one in value["failures"]] == [("vllm-slow", "timed_out")]
    assert "signature T-1: the pattern took more than 5000 ms" in err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["no.log"], "file_read"),
        (["plugins"], "is_a_directory"),
        (["-", "-"], "stdin_twice"),
        (["-", "--runtime", "vlm"], "unknown_runtime"),
        (["-", "--plugin", "no-such"], "unknown_plugin"),
    ],
)
def test_what_is_wrong_with_the_call_is_named(plugins: Path, words: list[str], code: str) -> None:
    if "--plugin" not in words:
        words = [*words, "--plugin", "vllm-made"]
    got, out, _ = run(plugins, *words, "--json")
    assert (got, json.loads(out)["error"]["code"]) == (2, code)


def test_a_runtime_narrows_the_plugins(plugins: Path) -> None:
    add_plugin(plugins, "sglang-made", engine="sglang", rules=RULES)
    both = ["--plugin", "vllm-made", "--plugin", "sglang-made", "--json"]
    assert json.loads(run(plugins, "-", "--runtime", "vllm", *both, stdin=BROKEN)[1])["signatures"] == 4
    assert json.loads(run(plugins, "-", "--runtime", "vllm-made", *both, stdin=BROKEN)[1])["signatures"] == 4
    assert json.loads(run(plugins, "-", "--runtime", "sglang", *both, stdin=BROKEN)[1])["signatures"] == 0


def test_a_line_of_a_gigabyte_takes_little_memory(plugins: Path) -> None:
    # Not ru_maxrss: across fork and exec it keeps what the process that started this one held.
    program = (
        "import runpy, sys; sys.argv = ['moeplan', *sys.argv[1:]]\n"
        "try: runpy.run_module('moeplan.cli.main', run_name='__main__')\n"
        "finally: print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0], file=sys.stderr)"
    )
    log = plugins.parent / "long.log"
    with log.open("wb") as stream:
        stream.write(HEALTHY)
        stream.truncate(10**9)  # NUL bytes without a line's end, on no disk block
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, "diagnose", str(log), "--plugin", "vllm-made", "--json"],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(plugins)},
        check=True,
        timeout=120,
    )
    value = json.loads(done.stdout)
    assert (value["logs"][0]["lines"], value["logs"][0]["cutLines"]) == (3, 1)
    assert int(done.stderr.split()[-1]) < 150_000


@pytest.mark.shared
def test_no_healthy_log_has_an_error(plugins: Path, shared_dir: Path) -> None:
    logs = sorted(str(path) for path in (shared_dir / "samples").rglob("*.log"))
    assert logs
    code, value = told(plugins, *logs)
    assert (code, value["findings"]) == (0, [])
    assert [log["lines"] for log in value["logs"]] == [Path(log).read_bytes().count(b"\n") for log in logs]
