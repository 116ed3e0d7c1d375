"""A small engine for the tests: two arguments of each kind, read as plugins read them."""

from __future__ import annotations

import json
from typing import Any

from moeplan.facts.launches import Knowledge, Program, Scene, read_scene
from moeplan.facts.model import FactSet, load_facts
from moeplan.manifests.argument_table import parse_argument_table
from moeplan.manifests.sources import read_source
from moeplan.model.rendering import ManifestSource

TABLE = parse_argument_table(
    [
        {"name": "--model", "kind": "value"},
        {"name": "--tensor-parallel-size", "aliases": ["-tp"], "kind": "value"},
        {"name": "--gpu-memory-utilization", "kind": "value"},
        {"name": "--speculative-config", "aliases": ["--spec"], "kind": "json"},
        {"name": "--enable-expert-parallel", "kind": "flag"},
    ]
)
PROGRAMS = (
    Program("engine", "engine", (("vllm", "serve"),), TABLE, ("vllm/vllm-openai",), ("serve",), bare=True),
    Program("router", "router", (("-m", "the.router"),), TABLE),
)
KNOWLEDGE = Knowledge(
    programs=PROGRAMS,
    versioned=("vllm/vllm-openai",),
    model=lambda reference: {"heads": 64} if reference.endswith("Known") else None,
)


def scene(*texts: str, site: dict[str, Any] | None = None, knowledge: Knowledge = KNOWLEDGE) -> Scene:
    """Return the scene of some texts, named ``0``, ``1``, …"""
    sources = []
    for number, text in enumerate(texts):
        read = read_source(str(number), text.encode())
        documents = None if read.documents is None else tuple(range(len(read.documents)))
        sources.append(ManifestSource(str(number), read.text, documents))
    return read_scene(sources, knowledge, site)


def facts(*rows: dict[str, Any]) -> FactSet:
    """Return facts of which only what a test is about is given."""
    plain = {
        "title": "the title",
        "kind": "lint",
        "severity": "error",
        "silent": "no",
        "basis": "documented",
        "consequence": "c",
        "remedy": "r",
        "sources": [{"source": "a document"}],
    }
    return load_facts(json.dumps([{**plain, **row} for row in rows]).encode(), "made")


def pod(command: str = "[vllm, serve, /m/Known]", more: str = "", pod_more: str = "", name: str = "d") -> str:
    """Return a Deployment with one container of two accelerators; ``more`` is put into the container."""
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  template:
    spec:
      {pod_more or "hostNetwork: false"}
      containers:
      - name: engine
        image: example/vllm/vllm-openai:v0.27.1
        command: {command}
        resources: {{limits: {{example.com/gpu: 2}}}}
        {more}
"""
