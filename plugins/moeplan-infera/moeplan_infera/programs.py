"""What Infera starts in a container: its engines' launchers, its router and its cache daemon, with their arguments."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from moeplan.facts.launches import Program, Subject
from moeplan.manifests.argument_table import ArgumentTable, parse_argument_table

__all__ = ["DEFAULT_PORTS", "infera_programs", "infera_role"]

DEFAULT_PORTS = {"infera.server": 8000, "infera.engine.vllm": 30000, "infera.engine.sglang": 30000}
"""The port each program listens on unless told. Source: Infera 5890f7f, builders.go servicePort; facts R-ARG-027."""
_ROLES = {"kv_producer": "prefill", "kv_consumer": "decode"}


@cache
def _rows() -> Any:
    return json.loads(files("moeplan_infera").joinpath("arguments.json").read_bytes())


def infera_programs(vllm: ArgumentTable) -> tuple[Program, ...]:
    """Return Infera's programs.

    Args:
        vllm: the arguments of ``vllm serve``; Infera's launcher takes its own and passes all others on.

    Source: Infera, ``infera/engine/vllm/args.py``, ``infera/engine/sglang/args.py``, ``infera/server/args.py``.
    """
    return (
        _program("infera.engine.vllm", "engine", _joined(_rows()["infera.engine.vllm"], vllm)),
        _program("infera.engine.sglang", "engine", parse_argument_table(_rows()["infera.engine.sglang"])),
        _program("infera.server", "router", parse_argument_table(_rows()["infera.server"])),
        _program("infera.kvd", "sidecar", parse_argument_table(_rows()["infera.kvd"])),
    )


def _program(module: str, kind: str, table: ArgumentTable) -> Program:
    return Program(module, kind, (("python3", "-m", module), ("python", "-m", module)), table)


def _joined(rows: Any, vllm: ArgumentTable) -> ArgumentTable:
    """Return Infera's own arguments before vLLM's; a name of both is Infera's, which takes it out."""
    own = parse_argument_table(rows)
    return ArgumentTable(own.specs + tuple(spec for spec in vllm.specs if own.find(spec.name) is None))


def infera_role(subject: Subject) -> str:
    """Return an engine's role where its service states none: what its KV connector makes it, or else ``mixed``.

    Source: Infera, ``infera/engine/vllm/args.py``, ``_KV_ROLE_TO_DISAGG``; a service's role is mixed by default.
    """
    if subject.kind != "engine":
        return ""
    config = subject.arguments.json("--kv-transfer-config")
    own = _ROLES.get(str(config.get("kv_role"))) if isinstance(config, dict) else None
    given = subject.arguments.last("--disaggregation-mode")
    if own is None and given is not None and given.value in ("prefill", "decode"):
        own = given.value
    return own or "mixed"
