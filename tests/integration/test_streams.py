"""Whatever becomes of stdout and stderr, an exit code never says more than the judgement does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MOEPLAN = f"'{sys.executable}' -m moeplan.cli.main"


def shell(command: str, cwd: Path) -> int:
    """Return the exit code of moeplan at the head of ``command``, a bash command line."""
    line = f"{MOEPLAN} {command}\nexit ${{PIPESTATUS[0]}}"
    return subprocess.run(["bash", "-c", line], cwd=cwd, check=False, capture_output=True, timeout=60).returncode


@pytest.mark.parametrize("command", ["verdict bundle --policy policy.json", "audit bundle.tar --policy policy.json"])
def test_a_reader_that_went_away_is_no_pass(command: str, demo: Path) -> None:
    assert shell(f"{command} | true", demo) in (3, 141)
    assert shell(f"{command} --json | true", demo) in (3, 141)


def test_a_plan_nobody_reads_is_not_exit_0(demo: Path) -> None:
    batch = '{"model":"kimi-k3","hardware":"h200","devices":8}\\n' * 3000
    (demo / "lines.jsonl").write_text(batch.replace("\\n", "\n"))
    assert shell("plan --batch lines.jsonl | head -1 >/dev/null", demo) == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("verdict bundle --policy policy.json", 2),
        ("verdict bundle --policy policy.json --json", 2),
        ("plan kimi-k3 h200", 2),
        ("plan --help", 2),
        ("--help", 2),
        ("verify missing --policy policy.json --json", 2),
    ],
)
def test_a_full_device_is_named_and_exits_2(command: str, code: int, demo: Path) -> None:
    assert shell(f"{command} >/dev/full", demo) == code


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_slow_reader_gets_everything(unbuffered: str, demo: Path) -> None:
    (demo / "many.jsonl").write_text('{"model":"kimi-k3","hardware":"h200","devices":8}\n' * 300)
    command = f"export PYTHONUNBUFFERED={unbuffered}; {MOEPLAN} plan --batch many.jsonl | (sleep 0.2; wc -l)"
    done = subprocess.run(["bash", "-c", command], cwd=demo, check=False, capture_output=True, timeout=60)
    assert done.stdout.split() == [b"300"]


def test_closed_streams_leave_the_exit_code(demo: Path) -> None:
    assert shell("verdict bundle --policy policy.json >&-", demo) == 2
    assert shell("verdict bundle --policy policy.json 2>&-", demo) == 3
    assert shell("verify missing --policy policy.json --json >&-", demo) == 2
    assert shell("verify missing --policy policy.json 2>/dev/full", demo) == 2


def test_closed_input_is_named(demo: Path) -> None:
    assert shell("plan --batch - <&-", demo) == 2


def test_messages_name_the_file(demo: Path) -> None:
    (demo / "notes.txt").write_text("not a bundle\n")
    command = [sys.executable, "-m", "moeplan.cli.main", "verify", "notes.txt", "--policy", "policy.json"]
    done = subprocess.run(command, cwd=demo, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 4
    assert done.stderr.splitlines()[-1].startswith("error: notes.txt: ")


def test_a_private_key_is_no_public_key(demo: Path) -> None:
    key = Path(__file__).resolve().parents[2] / "tests" / "data" / "published-test-key.pem"
    command = [sys.executable, "-m", "moeplan.cli.main", "policy", "init", "--trust-key", str(key)]
    done = subprocess.run(command, cwd=demo, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {key}: this is a private key")
    assert "PRIVATE KEY-----" not in done.stderr
