"""A probe inside a vLLM engine. Off unless switched on by environment; see :mod:`moeplan_vllm_probe.switches`."""

from __future__ import annotations

VERSION = "0.1.0"
