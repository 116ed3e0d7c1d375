"""``moeplan collect endpoint`` against the stub: schedules, lengths, prefixes, the journal, privacy, a clean stop."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from moeplan.cli.main import main
from tests.collecting.conftest import DEMO
from tests.stub_server.behaviours import SECRET_ANSWER
from tests.stub_server.server import Stub, serving

ROOT = Path(__file__).resolve().parents[2]
TOKENIZER = Tokenizer.from_file(str(DEMO / "tiny-moe" / "tokenizer.json"))


def load(requests: int, inputs: int, outputs: int, *more: str) -> tuple[str, ...]:
    sizes = ("--requests", str(requests), "--input-tokens", str(inputs), "--output-tokens", str(outputs))
    return (*sizes, "--trials", "1", *more)


def prompts(stub: Stub) -> list[str]:
    return [asked.get("prompt") or asked["messages"][0]["content"] for asked in stub.bodies]


def ids(text: str) -> list[int]:
    made: list[int] = TOKENIZER.encode(text, add_special_tokens=False).ids
    return made


def test_prompts_have_their_length_by_the_models_tokenizer_and_differ(collect: Callable[..., Any]) -> None:
    with serving("ok") as stub:
        collect(stub.url, *load(5, 77, 2, "--concurrency", "2", "--warmup-requests", "2", "--trials", "2"))
    texts = prompts(stub)
    assert [len(ids(text)) for text in texts] == [77] * 14
    assert len(set(texts)) == 14
    assert {asked["max_tokens"] for asked in stub.bodies} == {2}
    assert all(asked["ignore_eos"] and asked["stream_options"]["include_usage"] for asked in stub.bodies)


def test_token_ids_are_sent_as_they_are(collect: Callable[..., Any]) -> None:
    with serving("ok") as stub:
        collect(stub.url, *load(3, 50, 2, "--concurrency", "1", "--api", "completions", "--prompt", "token-ids"))
    vocabulary = json.loads((DEMO / "tiny-moe" / "config.json").read_bytes())["vocab_size"]
    for asked in stub.bodies:
        assert len(asked["prompt"]) == 50
        assert all(type(one) is int and 0 < one < vocabulary for one in asked["prompt"])


def test_the_declared_share_of_each_prompt_is_common(collect: Callable[..., Any]) -> None:
    with serving("ok") as stub:
        collect(stub.url, *load(4, 30, 1, "--concurrency", "1", "--prefix-share-bps", "3334"))
    rows = [ids(text) for text in prompts(stub)]
    common = next(place for place, column in enumerate(zip(*rows, strict=True)) if len(set(column)) > 1)
    assert common in (10, 11)  # 30 * 0.3334 = 10.002, rounded down; the next token may be equal by chance
    assert len({tuple(row) for row in rows}) == 4


def test_a_trace_sets_lengths_times_and_common_blocks(collect: Callable[..., Any], tmp_path: Path) -> None:
    lines = [
        {"timestamp": 1000, "input_length": 20, "output_length": 3, "hash_ids": [7, 8, 9]},
        {"timestamp": 1100, "input_length": 24, "output_length": 2, "hash_ids": [7, 8, 10]},
        {"timestamp": 1200.5, "input_length": 9, "output_length": 1, "hash_ids": [11, 12]},
    ]
    trace = tmp_path / "trace.jsonl"
    trace.write_text("\n".join(map(json.dumps, lines)))
    words = ("--schedule", "trace", "--trace", str(trace), "--trace-block-tokens", "8", "--trials", "1")
    with serving("ok") as stub:
        code, made = collect(stub.url, *words)
    assert code == 0
    rows = [ids(text) for text in prompts(stub)]
    assert [len(row) for row in rows] == [20, 24, 9]
    assert rows[0][:16] == rows[1][:16]
    assert rows[0][16:20] != rows[1][16:20]
    assert [asked["max_tokens"] for asked in stub.bodies] == [3, 2, 1]
    due = [row["start_ns"] - row["queue_ns"] for row in made.table("requests")]
    assert [at // 500_000 * 500_000 for at in due] == [0, 100_000_000, 200_500_000]
    payload = made.records[0]["payload"]
    assert (payload["schedule"], payload["requestedInputTokens"], payload["requestedOutputTokens"]) == ("trace", 9, 1)


def test_an_open_loop_keeps_what_a_slow_server_made_wait(collect: Callable[..., Any]) -> None:
    """One at a time, 10 a second, each 250 ms long: the k-th is sent at 250 k ms and was due at 100 k ms."""
    words = ("--schedule", "constant", "--rate", "10", "--concurrency", "1")
    with serving("ok", pace_s=0.125) as stub:
        _, made = collect(stub.url, *load(5, 8, 2, *words))
    rows = made.table("requests")
    for number, row in enumerate(rows):
        assert row["start_ns"] - row["queue_ns"] == number * 100_000_000
        assert row["queue_ns"] >= number * 148_000_000  # later on a busy machine, never earlier
    assert all(later["start_ns"] >= earlier["end_ns"] for earlier, later in pairwise(rows))
    assert made.records[0]["payload"]["schedule"] == "constant"


def test_poisson_arrivals_are_those_of_their_seed_and_rate(collect: Callable[..., Any]) -> None:
    words = ("--schedule", "poisson", "--rate", "200", "--seed", "5")
    seen = []
    for out in ("one", "two"):
        with serving("ok", pace_s=0) as stub:
            _, made = collect(stub.url, *load(120, 4, 1, *words), out=out)
        seen.append([row["start_ns"] - row["queue_ns"] for row in made.table("requests")])
    assert seen[0] == seen[1]
    gaps = [later - earlier for earlier, later in pairwise(seen[0])]
    mean = sum(gaps) / len(gaps)
    assert 3.5e6 < mean < 6.8e6  # 5 ms, and 119 draws lie within 3.3 standard errors
    assert 0.6 < (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5 / mean < 1.5  # exponential: 1


def test_the_run_is_announced_on_disk_before_the_first_request(collect: Callable[..., Any], tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []

    def look() -> None:
        (path,) = (tmp_path / "out" / "evidence").glob("run-????????????.json")
        seen.append(json.loads(path.read_bytes()))

    with serving("ok") as stub:
        stub.on_request = look
        _, made = collect(stub.url, *load(2, 4, 1, "--concurrency", "1", "--warmup-requests", "1", "--trials", "2"))
    assert (seen[0]["announced"], seen[0]["state"], seen[0]["trials"]) == (True, "open", [])
    assert [len(one["trials"]) for one in seen] == [0, 0, 0, 1, 1, 1]  # the first trial is listed before the second
    assert (made.run["state"], len(made.run["trials"]), made.run["announced"]) == ("closed", 2, True)


def test_no_secret_reaches_an_output(
    stated: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("STUB_KEY", "SECRET-KEY-5566")
    with serving("ok", "stream_error", "too_many", "ok") as stub:
        stub.extra_metrics = 'vllm:odd{host="SECRET-HOST-42",path="/home/SECRET-USER-11"} 1\n'
        words = ["collect", "endpoint", "--url", stub.url, "--tokenizer", str(DEMO / "tiny-moe"), *stated]
        words += [*load(4, 8, 2, "--concurrency", "1"), "--api-key-env", "STUB_KEY", "-o", str(tmp_path / "out")]
        assert main(words) == 0
        assert main(["collect", "smoke", "--url", stub.url, *stated, "-o", str(tmp_path / "smoke")]) == 0
    assert sum(b"Authorization: Bearer SECRET-KEY-5566" in head for head in stub.heads) >= 4
    told = capsys.readouterr()
    outputs = {"stdout": told.out.encode(), "stderr": told.err.encode()}
    for root in (tmp_path / "out", tmp_path / "smoke"):
        outputs |= {str(path.relative_to(tmp_path)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert len(outputs) >= 9
    secrets = [SECRET_ANSWER, "SECRET", "127.0.0.1", f":{stub.port}", "numbers from one", *prompts(stub)[:4]]
    for name, data in outputs.items():
        for secret in secrets:
            assert secret.encode() not in data, (name, secret)


def test_a_port_forward_is_said(collect: Callable[..., Any]) -> None:
    with serving("ok") as stub:
        _, direct = collect(stub.url, *load(2, 4, 1, "--concurrency", "1"))
        _, forwarded = collect(stub.url, *load(2, 4, 1, "--concurrency", "1", "--kube-context", "c"), out="two")
    assert direct.records[0]["payload"]["path"] == "direct"
    assert forwarded.records[0]["payload"]["path"] == "port_forward"
    assert "through_port_forward" in forwarded.codes() - direct.codes()


def test_a_key_gives_one_pseudonym_and_another_key_another(collect: Callable[..., Any], tmp_path: Path) -> None:
    names = []
    with serving("ok") as stub:
        for out, key in (("1", "a"), ("2", "a"), ("3", "b")):
            more = ("--concurrency", "1", "--pseudonym-key", str(tmp_path / key))
            names.append(collect(stub.url, *load(1, 4, 1, *more), out=out)[1].records[0]["payload"]["endpoint"])
    assert names[0] == names[1] != names[2]
    assert all(name.startswith("endpoint-") for name in names)


def test_another_tokenizer_than_the_engines_is_seen(collect: Callable[..., Any]) -> None:
    with serving("ok") as stub:
        stub.token_factor = 2
        _, made = collect(stub.url, *load(1, 4, 1, "--concurrency", "1"))
    assert "lengths_differ" in made.codes()


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_leaves_an_open_valid_run(
    stated: list[str], tmp_path: Path, sign: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    with serving("ok", "ok", "ok", "hang_mid_stream") as stub:
        words = ["collect", "endpoint", "--url", stub.url, "--tokenizer", str(DEMO / "tiny-moe"), *stated]
        words += [*load(3, 4, 2, "--concurrency", "1", "--trials", "2"), "-o", str(out)]
        process = subprocess.Popen([sys.executable, "-m", "moeplan.cli.main", *words], cwd=ROOT)
        until = time.monotonic() + 30
        while len(stub.bodies) < 4 and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(sign)
        assert process.wait(10) == 130
    (path,) = (out / "evidence").glob("run-????????????.json")
    run = json.loads(path.read_bytes())
    assert (run["state"], run["announced"], run["plannedTrials"]) == ("open", True, 2)
    assert [trial["state"] for trial in run["trials"]] == ["complete", "aborted"]
    plan, checkpoint = stated[1], stated[3]
    bundle = [
        "bundle",
        "create",
        str(tmp_path / "bundle"),
        "--plan",
        plan,
        "--checkpoint",
        checkpoint,
        "--evidence",
        str(out),
    ]
    capsys.readouterr()
    assert main(bundle) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "path", "code"),
    [
        (("--url", "ftp://h"), "--url", "invalid_url"),
        (("--url", "http://user:pw@h"), "--url", "credentials_in_url"),
        (("--url", "http://127.0.0.1:9"), "--url", "endpoint_not_ready"),
        (("--api-key-env", "NO_SUCH_VARIABLE"), "--api-key-env NO_SUCH_VARIABLE", "no_api_key"),
        (("--rate", "0", "--schedule", "poisson"), "--rate", "invalid_value"),
        (("--schedule", "constant"), "--rate", "not_stated"),
        (("--schedule", "trace"), "--trace", "not_stated"),
        (("--concurrency", "0"), "--concurrency", "invalid_value"),
        (("--prefix-share-bps", "10001"), "--prefix-share-bps", "invalid_value"),
        (("--deadline", "-1"), "--deadline", "invalid_value"),
        (("--prompt", "token-ids"), "--prompt", "usage"),
        (("--kube-context", "c", "--through", "direct"), "--through", "usage"),
    ],
)
def test_what_is_refused_is_named_and_leaves_nothing(
    more: tuple[str, ...], path: str, code: str, stated: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["collect", "endpoint", "--url", "http://127.0.0.1:9", "--tokenizer", str(DEMO / "tiny-moe"), *stated]
    words += [*load(2, 4, 1, "--concurrency", "1"), *more, "-o", str(tmp_path / "out"), "--json"]
    assert main(words) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["path"], error["code"]) == (path, code)
    assert not (tmp_path / "out").exists()
