"""The plan, fit, model, hardware and registry commands: bytes, exit codes, and errors named by option."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from moeplan.catalogue.registries import load_registry
from moeplan.cli.main import main
from moeplan.model.checkpoint import CheckpointFile, CheckpointManifest, Tensor, root_digest
from moeplan.model.plan import Plan, Scenario
from moeplan.planning.builder import plan
from moeplan.planning.export import plan_bytes
from moeplan.wire.documents import dump_document, identify, load_document

Capture = pytest.CaptureFixture[bytes]
DIGEST = "sha256:" + "5" * 64


def seed_plan(**rest: Any) -> Plan:
    return plan(load_registry(), Scenario("kimi-k3", "h200", 8, **rest))


def test_json_is_the_documents_bytes_and_nothing_else(capfdbinary: Capture) -> None:
    assert main(["plan", "kimi-k3", "h200", "--json"]) == 0
    captured = capfdbinary.readouterr()
    assert captured.out == dump_document(seed_plan())
    assert captured.err == b""


def test_form_1_0_0_bare_and_in_its_envelope(capfdbinary: Capture) -> None:
    assert main(["plan", "kimi-k3", "h200", "--schema-version", "1.0.0", "--json"]) == 0
    assert capfdbinary.readouterr().out == plan_bytes(seed_plan(), "1.0.0")
    assert main(["plan", "kimi-k3", "h200", "--envelope", "--registry", "1.0.0", "--json"]) == 0
    wrapped = json.loads(capfdbinary.readouterr().out)
    assert (wrapped["registryVersion"], wrapped["plan"]["schemaVersion"]) == ("1.0.0", "1.0.0")


def test_table_tells_the_floor_the_next_step_and_the_gates(capfdbinary: Capture) -> None:
    assert main(["plan", "kimi-k3", "h200", "--devices", "8"]) == 0
    out = capfdbinary.readouterr().out.decode()
    for words in ("13 minimum, 16 rounded to 2 node(s) of 8", "increase_capacity", "economics_resilience", "1.56 TB"):
        assert words in out
    assert main(["plan", "kimi-k3", "b300"]) == 0
    assert "memory of one accelerator unknown" in capfdbinary.readouterr().out.decode()


def test_every_option_reaches_the_scenario(capfdbinary: Capture, tmp_path: Path) -> None:
    packages = tmp_path / "packages.txt"
    packages.write_bytes(b"vllm==0.32.0\n")
    words = (
        "--devices 17 --devices-per-node 4 --reserve-pct 7.05 --runtime SGLang --input-tokens 100 --output-tokens 20"
    )
    words += " --concurrency 3 --target-ttft-ms 900 --target-inter-token-ms 40 --availability ha"
    words += " --prefix-cache-share-bps 12 --tensor-parallel-size 8 --pipeline-parallel-size 2 --data-parallel-size 3"
    words += f" --expert-parallel-size 4 --precision fp8 --runtime-packages {packages}"
    assert main(["plan", "glm-5-2", "h100", *words.split(), "--json"]) == 0
    made = load_document(capfdbinary.readouterr().out, Plan)
    assert made.scenario_key == "glm-5-2--h100--sglang--17x4--r705--i100--o20--c3--t900--p40--ha"
    assert made.workload.prefix_cache_share_basis_points == 12
    sizes = made.deployment.parallelism
    assert (sizes.tensor_parallel_size, sizes.pipeline_parallel_size) == (8, 2)
    assert (sizes.data_parallel_size, sizes.expert_parallel_size) == (3, 4)
    assert made.deployment.precision == "fp8"
    runtime = made.deployment.roles[0].runtime
    assert runtime is not None
    # printf 'vllm==0.32.0\n' | sha256sum
    assert runtime.digest == "sha256:78e72b279d119f904931b877961059d7425be9c0574364158db70762c84d77c8"
    assert runtime.form == "distributions"


def test_the_plans_own_command_line_makes_it_again(capfdbinary: Capture, tmp_path: Path) -> None:
    words = ["plan", "kimi-k3", "h200", "--prefix-cache-share-bps", "1", "--runtime-packages", DIGEST, "--json"]
    assert main(words) == 0
    first = capfdbinary.readouterr().out
    assert main(json.loads(first)["reproducibility"]["cli"].split()[1:]) == 0
    assert capfdbinary.readouterr().out == first


def manifest() -> CheckpointManifest:
    files = (CheckpointFile("a.safetensors", 1024, DIGEST),)
    tensors = (Tensor("w", "a.safetensors", "U8", (1000,), 1000),)
    return CheckpointManifest(
        repository=None,
        revision=None,
        root=root_digest(files),
        tensor_bytes=1000,
        index=None,
        files=files,
        tensors=tensors,
    )


def test_checkpoint_gives_exact_bytes(capfdbinary: Capture, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.json"
    path.write_bytes(dump_document(manifest()))
    assert main(["plan", "kimi-k3", "h200", "--devices", "1", "--checkpoint", str(path), "--json"]) == 0
    captured = capfdbinary.readouterr()
    made = load_document(captured.out, Plan)
    assert made.residency.status == "pass"
    assert made.artifact.checkpoint is not None
    assert made.artifact.checkpoint.manifest == identify(manifest())
    assert captured.err == b""
    path.write_text(json.dumps(json.loads(dump_document(manifest())), indent=1), "utf-8")
    assert main(["plan", "kimi-k3", "h200", "--devices", "1", "--checkpoint", str(path), "--json"]) == 0
    captured = capfdbinary.readouterr()
    assert load_document(captured.out, Plan) == made
    assert b"is not in canonical form" in captured.err


def test_require_turns_blocked_into_exit_1(capfdbinary: Capture) -> None:
    assert main(["plan", "kimi-k3", "h200", "--require", "validation_required"]) == 1
    assert main(["plan", "kimi-k3", "h200", "--devices", "13", "--require", "validation_required"]) == 0


def test_output_is_written_whole_or_not_at_all(capfdbinary: Capture, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assert main(["plan", "kimi-k3", "h200", "--output", str(path)]) == 0
    assert path.read_bytes() == dump_document(seed_plan())
    assert main(["plan", "kimi-k3", "nothing", "--output", str(path)]) == 2
    assert path.read_bytes() == dump_document(seed_plan())
    assert main(["plan", "kimi-k3", "h200", "--output", str(tmp_path / "no" / "plan.json")]) == 2
    assert os.listdir(tmp_path) == ["plan.json"]


ERRORS = [
    ("plan", "MODEL", "usage"),
    ("plan kimi-k3", "HARDWARE", "usage"),
    ("plan kimi-k4 h200", "MODEL", "unknown_model"),
    ("plan kimi-k3 h20", "HARDWARE", "unknown_hardware"),
    ("plan kimi-k3 h200 --devices 0", "--devices", "invalid_value"),
    ("plan kimi-k3 h200 --devices eight", "--devices", "not_an_integer"),
    ("plan kimi-k3 h200 --devices -8", "--devices", "not_an_integer"),
    ("plan kimi-k3 h200 --devices-per-node 0", "--devices-per-node", "invalid_value"),
    ("plan kimi-k3 h200 --reserve-bps 10000", "--reserve-bps", "invalid_value"),
    ("plan kimi-k3 h200 --reserve-pct 100", "--reserve-pct", "invalid_percent"),
    ("plan kimi-k3 h200 --reserve-pct 1 --reserve-bps 1", "--reserve-pct", "usage"),
    ("plan kimi-k3 h200 --runtime @", "--runtime", "invalid_runtime"),
    ("plan kimi-k3 h200 --input-tokens 0", "--input-tokens", "invalid_value"),
    ("plan kimi-k3 h200 --output-tokens 1.5", "--output-tokens", "not_an_integer"),
    ("plan kimi-k3 h200 --concurrency 0", "--concurrency", "invalid_value"),
    ("plan kimi-k3 h200 --target-ttft-ms 0", "--target-ttft-ms", "invalid_value"),
    ("plan kimi-k3 h200 --target-inter-token-ms 1_0", "--target-inter-token-ms", "not_an_integer"),
    ("plan kimi-k3 h200 --availability twice", "--availability", "invalid_value"),
    ("plan kimi-k3 h200 --prefix-cache-share-bps 10001", "--prefix-cache-share-bps", "invalid_value"),
    ("plan kimi-k3 h200 --tensor-parallel-size 0", "--tensor-parallel-size", "invalid_value"),
    ("plan kimi-k3 h200 --precision FP8", "--precision", "invalid_value"),
    ("plan kimi-k3 h200 --runtime-image latest", "--runtime-image", "invalid_digest"),
    ("plan kimi-k3 h200 --runtime-packages no-such-file", "no-such-file", "file_read"),
    (f"plan kimi-k3 h200 --runtime-image {DIGEST} --runtime-packages {DIGEST}", "command line", "usage"),
    ("plan kimi-k3 h200 --checkpoint no-such-file", "no-such-file", "file_read"),
    ("plan kimi-k3 h200 --registry 7.0.0", "registry", "unknown_registry"),
    ("plan kimi-k3 h200 --registry no-such-file", "no-such-file", "file_read"),
    ("plan kimi-k3 h200 --schema-version 2.0.0", "--schema-version", "unsupported_version"),
    ("plan kimi-k3 h200 --schema-version 1.1.0 --envelope", "--envelope", "usage"),
    ("plan kimi-k3 h200 --require ready", "--require", "invalid_value"),
    ("plan --batch x --devices 3", "--devices", "usage"),
    ("plan kimi-k3 --batch x", "MODEL", "usage"),
    ("plan --batch no-such-file", "no-such-file", "file_read"),
    ("plan kimi-k3 h200 --frobnicate", "command line", "usage"),
    ("model kimi", "MODEL", "unknown_model"),
    ("hardware h20", "HARDWARE", "unknown_hardware"),
    ("fit kimi-k3 h20", "HARDWARE", "unknown_hardware"),
    ("fit kimi-k3 h200 --devices-per-node 0", "--devices-per-node", "invalid_value"),
    ("fit kimi-k3 h200 --reserve-bps x", "--reserve-bps", "not_an_integer"),
    ("registry validate no-such-file", "no-such-file", "file_read"),
]


@pytest.mark.parametrize(("line", "path", "code"), ERRORS)
def test_every_error_is_named_by_its_option(line: str, path: str, code: str, capfdbinary: Capture) -> None:
    assert main([*line.split(), "--json"]) == 2
    captured = capfdbinary.readouterr()
    error = json.loads(captured.out)["error"]
    assert (error["path"], error["code"]) == (path, code)
    assert b"Traceback" not in captured.err


def test_batch_keeps_order_places_and_exit_code(capfdbinary: Capture, tmp_path: Path) -> None:
    good = '{"model":"kimi-k3","hardware":"h200","devices":8}\n'
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    path.write_text(good * 3, "utf-8")
    assert main(["plan", "--batch", str(path), "--schema-version", "1.0.0"]) == 0
    assert capfdbinary.readouterr().out == plan_bytes(seed_plan(), "1.0.0") * 3
    path.write_text(good + "oops\n" + good, "utf-8")
    assert main(["plan", "--batch", str(path), "--output", str(out)]) == 2
    lines = out.read_bytes().splitlines(keepends=True)
    assert lines[0] == lines[2] == dump_document(seed_plan())
    assert json.loads(lines[1])["error"]["line"] == 2
    captured = capfdbinary.readouterr()
    assert captured.out == b""
    assert b"1 line(s)" in captured.err


@pytest.mark.parametrize("lines", [300, 9000])
def test_batch_whose_reader_goes_away_blames_no_file(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"model":"kimi-k3","hardware":"h200","devices":8}\n' * lines, "utf-8")
    command = [sys.executable, "-m", "moeplan.cli.main", "plan", "--batch", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.read(1) == b"{"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


def test_large_batch_on_several_processes_equals_one(capfdbinary: Capture, tmp_path: Path) -> None:
    lines = [
        json.dumps({"model": "kimi-k3", "hardware": "h200", "devices": n % 900 + (n % 1000 != 500)})
        for n in range(6000)
    ]
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    path.write_text("\n".join(lines), "utf-8")
    assert main(["plan", "--batch", str(path), "--schema-version", "1.0.0", "--output", str(out)]) == 2
    made = out.read_bytes().splitlines()
    assert len(made) == 6000
    for number, (line, result) in enumerate(zip(lines, made, strict=True), 1):
        devices, value = json.loads(line)["devices"], json.loads(result)
        if devices == 0:
            assert value["error"]["line"] == number
        else:
            assert value["target"]["requestedAccelerators"] == devices


def test_fit_gives_exact_integers(capfdbinary: Capture) -> None:
    assert main(["fit", "kimi-k3", "--reserve-pct", "0", "--devices-per-node", "4", "--json"]) == 0
    value = json.loads(capfdbinary.readouterr().out)
    assert (value["tensorBytes"], value["reserveBasisPoints"]) == (1560860324864, 0)
    floors = {item["hardwareId"]: item for item in value["hardware"]}
    assert floors["h200"]["minimumAccelerators"] == 12  # 1560.86 / 141
    assert floors["h200"]["roundedNodes"] == 3
    assert floors["mi300x"]["minimumAccelerators"] == 9  # 1560.86 / 192
    assert floors["mi300x"]["roundedAccelerators"] == 12
    assert floors["b300"]["minimumAccelerators"] is None
    assert main(["fit", "kimi-k3", "h200"]) == 0
    assert "122.67 GB" in capfdbinary.readouterr().out.decode()


def test_lists_and_details(capfdbinary: Capture) -> None:
    assert main(["models", "--json"]) == 0
    assert json.loads(capfdbinary.readouterr().out)["models"][0]["id"] == "kimi-k3"
    assert main(["hardware", "--registry", "1.0.0", "--json"]) == 0
    shown = [item["id"] for item in json.loads(capfdbinary.readouterr().out)["hardware"]]
    assert shown == ["h200", "h100", "a100", "rtx6000"]
    assert main(["hardware", "AMD/mi300x-192gb", "--json"]) == 0
    value = json.loads(capfdbinary.readouterr().out)
    assert value["hardware"][0]["memoryGigabytes"]["value"] == 192
    assert len(value["sources"]) == 2
    assert main(["model", "zai-org/glm-5.2", "--json"]) == 0
    value = json.loads(capfdbinary.readouterr().out)
    assert value["model"]["claims"]["activeParameters"]["status"] == "unknown"
    assert len(value["sources"]) == 3
    for words in (["models"], ["hardware"], ["hardware", "gb200"], ["model", "kimi-k3"]):
        assert main(words) == 0
    out = capfdbinary.readouterr().out.decode()
    assert "both 186 GB and 192 GB" in out
    assert "text_config.num_experts_per_token" in out


def test_registry_validate(capfdbinary: Capture, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_bytes(dump_document(load_registry("1.0.0")))
    assert main(["registry", "validate", str(path), "--json"]) == 0
    value = json.loads(capfdbinary.readouterr().out)
    assert (value["ok"], value["kind"], value["digest"]) == (True, "registry", identify(load_registry("1.0.0")))
    broken = json.loads(path.read_bytes())
    for model in broken["models"]:
        model["revision"], model["extra"] = "main", 1
    for item in broken["hardware"]:
        item["memoryGigabytes"]["value"] = -1
    path.write_text(json.dumps(broken), "utf-8")
    assert main(["registry", "validate", str(path), "--json"]) == 2
    captured = capfdbinary.readouterr()
    value = json.loads(captured.out)
    assert value["ok"] is False
    paths = {issue["path"] for issue in value["error"]["issues"]}
    wanted = {f"$.models[{n}].{key}" for n in range(5) for key in ("revision", "extra")}
    wanted |= {f"$.hardware[{n}].memoryGigabytes.value" for n in range(4)}
    assert paths == wanted
    assert all(path.encode() in captured.err for path in paths)
