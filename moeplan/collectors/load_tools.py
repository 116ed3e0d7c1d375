"""Load tools that are installed here: what each is called with, and where it leaves its raw file.

Source: vLLM 0.32 ``vllm bench serve --help``; aiperf 0.13 ``aiperf profile``; guidellm 0.8.1 README and ``schemas``.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import attrs

from moeplan.errors import InputError, Issue, PluginError

__all__ = ["LOAD_TOOLS", "LoadTool", "ToolLoad", "find_tool", "run_tool"]

_GRACE_S = 10.0
_MOST_TOLD = 400


@attrs.frozen
class ToolLoad:
    """What one trial of a tool is to do; it has no word of prompts."""

    url: str
    model: str
    api: str
    tokenizer: str
    requests: int
    input_tokens: int
    output_tokens: int
    concurrency: int
    warmup_requests: int
    ignore_eos: bool
    seed: int


@attrs.frozen
class LoadTool:
    """One tool.

    Attributes:
        name: of the importer that reads its file.
        program: what is looked for on the path.
        arguments: what it is called with, given the load and a directory for its files.
        raw: the raw file it leaves, relative to that directory.
        summary: its summary beside it, where there is one.
        key_variable: the environment variable it takes an API key from; None takes none.
        warms_up: whether it can send a warm-up.
    """

    name: str
    program: str
    arguments: Callable[[ToolLoad, Path], list[str]]
    raw: str
    summary: str | None = None
    key_variable: str | None = None
    warms_up: bool = True


def _vllm_bench(load: ToolLoad, out: Path) -> list[str]:
    chat = load.api == "chat"
    return [
        *("bench", "serve", "--backend", "openai-chat" if chat else "openai", "--base-url", load.url),
        *("--endpoint", "/v1/chat/completions" if chat else "/v1/completions"),
        *("--model", load.model, "--served-model-name", load.model, "--tokenizer", load.tokenizer),
        *("--dataset-name", "random", "--random-input-len", str(load.input_tokens)),
        *("--random-output-len", str(load.output_tokens), "--num-prompts", str(load.requests)),
        *("--max-concurrency", str(load.concurrency), "--num-warmups", str(load.warmup_requests)),
        *("--ready-check-timeout-sec", "0", "--seed", str(load.seed), "--temperature", "0"),
        *("--save-result", "--save-detailed", "--result-dir", str(out), "--result-filename", "trial.json"),
        *(("--ignore-eos",) if load.ignore_eos else ()),
    ]


def _aiperf(load: ToolLoad, out: Path) -> list[str]:
    return [
        *("profile", "-m", load.model, "--url", load.url, "--endpoint-type", load.api, "--streaming"),
        *("--tokenizer", load.tokenizer, "--concurrency", str(load.concurrency)),
        *("--request-count", str(load.requests), "--isl", str(load.input_tokens), "--isl-stddev", "0"),
        *("--osl", str(load.output_tokens), "--osl-stddev", "0", "--random-seed", str(load.seed)),
        *("--export-level", "records", "--ui", "None", "--artifact-dir", str(out)),
        *(("--warmup-request-count", str(load.warmup_requests)) if load.warmup_requests else ()),
        *(("--extra-inputs", "ignore_eos:true") if load.ignore_eos else ()),
    ]


def _guidellm(load: ToolLoad, out: Path) -> list[str]:
    path = "/v1/chat/completions" if load.api == "chat" else "/v1/completions"
    data = f"kind=synthetic_text,prompt_tokens={load.input_tokens},output_tokens={load.output_tokens}"
    return [
        *("run", "--backend", f"kind=openai_http,target={load.url},model={load.model},request_format={path}"),
        *("--profile", f"kind=concurrent,streams={load.concurrency}", "--data", data),
        *("--constraint", f"kind=max_requests,count={load.requests}", "--seed", str(load.seed)),
        *("--tokenizer", f"kind=huggingface_auto,model={load.tokenizer}"),
        *("--output", f"kind=json,path={out / 'benchmarks.json'}"),
    ]


LOAD_TOOLS: Mapping[str, LoadTool] = {
    tool.name: tool
    for tool in (
        LoadTool("vllm-bench", "vllm", _vllm_bench, "trial.json", key_variable="OPENAI_API_KEY"),
        LoadTool("aiperf", "aiperf", _aiperf, "profile_export.jsonl", "profile_export_aiperf.json"),
        LoadTool("guidellm", "guidellm", _guidellm, "benchmarks.json", warms_up=False),
    )
}
"""Tools by the name of their importer."""


def find_tool(tool: LoadTool) -> str:
    """Return where the tool's program lies.

    Raises:
        InputError: it is not on the path.
    """
    found = shutil.which(tool.program)
    if found is None:
        step = f"install {tool.program}, or put it on the PATH"
        raise InputError(
            Issue("--tool", "tool_missing", f"no program {tool.program!r}", "an installed tool", next=step)
        )
    return found


async def run_tool(tool: LoadTool, program: str, load: ToolLoad, out: Path, deadline_s: float, key: str | None) -> None:
    """Run the tool until it ends, its deadline passes, or this is cancelled; it leaves its files below ``out``.

    What it prints goes to ``out/tool.log``. Its exit status is no measure of success: most tools end with 0 where
    requests failed, so that only a missing file counts.

    Raises:
        PluginError: ``tool_late`` or ``tool_failed``: it was stopped at its deadline, or left no raw file.
    """
    out.mkdir(parents=True, exist_ok=True)
    environment = dict(os.environ)
    if key is not None and tool.key_variable is not None:
        environment[tool.key_variable] = key
    with (out / "tool.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            program,
            *tool.arguments(load, out),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=asyncio.subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(deadline_s):
                status = await process.wait()
        except TimeoutError:
            raise _failed(tool, "tool_late", f"was stopped after {deadline_s:g} s") from None
        finally:
            await _stop(process)
    if not (out / tool.raw).is_file():
        raise _failed(tool, "tool_failed", f"left no {tool.raw}, and ended with status {status}")


def _failed(tool: LoadTool, code: str, message: str) -> PluginError:
    step = "see tool.log in the trial's directory below the output"
    return PluginError(Issue("--tool", code, f"{tool.name} {message}"[:_MOST_TOLD], f"a whole {tool.raw}", next=step))


async def _stop(process: asyncio.subprocess.Process) -> None:
    """End the tool and whatever it started, gently and then not."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _GRACE_S)
