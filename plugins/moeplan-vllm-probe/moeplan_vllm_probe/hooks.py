"""Where the probe takes hold of vLLM: found by name and by shape, not by version alone."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from moeplan_vllm_probe.faults import ProbeFault

__all__ = ["TESTED_VERSIONS", "engine_version", "find", "is_tested", "method_of", "require"]

TESTED_VERSIONS = ("0.32",)
"""Releases of vLLM whose hooks were tried with an engine. Any other is taken where every hook has its name there."""


def engine_version() -> str:
    """Return the version that the installed vLLM says it is; empty where it says none."""
    return str(getattr(find("vllm.version") or find("vllm"), "__version__", ""))


def is_tested(version: str) -> bool:
    """Return whether a version of vLLM is one whose hooks were tried."""
    return ".".join(version.split(".")[:2]) in TESTED_VERSIONS


def find(module: str, *names: str) -> Any:
    """Return a module, or what lies below it by attribute; None where it is not there."""
    try:
        found: Any = importlib.import_module(module)
    except ImportError:
        return None
    for name in names:
        found = getattr(found, name, None)
    return found


def require(module: str, *names: str) -> Any:
    """Return what lies below a module by attribute.

    Raises:
        ProbeFault: it is not there.
    """
    found = find(module, *names)
    if found is None:
        raise _missing(".".join([module, *names]))
    return found


def _missing(name: str) -> ProbeFault:
    """Return the fault of a hook that this vLLM does not have."""
    return ProbeFault(
        "hook_missing",
        f"vLLM {engine_version() or 'of no known version'} has no {name}",
        f"use vLLM {TESTED_VERSIONS[-1]}, or a probe made for this version",
    )


def method_of(worker: Any, name: str) -> Callable[..., Any]:
    """Return a worker's own method.

    Raises:
        ProbeFault: it has none of the name.
    """
    found: Callable[..., Any] | None = getattr(worker, name, None)
    if found is None:
        raise _missing(f"{type(worker).__module__}.{type(worker).__qualname__}.{name}")
    return found
