"""The entry point: what vLLM calls once in each of its processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moeplan_vllm_probe.compile_cache import own_compile_cache
from moeplan_vllm_probe.faults import LOGGER
from moeplan_vllm_probe.hashing import patch_iterators
from moeplan_vllm_probe.hooks import method_of, require
from moeplan_vllm_probe.session import Session
from moeplan_vllm_probe.starts import mark_engine_start
from moeplan_vllm_probe.switches import Switches, read_switches

__all__ = ["register"]

_WORKER = ("vllm.v1.worker.worker_base", "WorkerBase")
_REGISTERED: list[Session] = []
"""The session of this process: vLLM may call the entry point more than once."""


def register() -> None:
    """Do what the environment asks for; nothing at all, not even an import of vLLM, where all is off.

    Raises:
        ProbeFault: a switch is wrong, or a hook is not there. It stops the engine.
    """
    switches = read_switches()
    if not switches.any or _REGISTERED:
        return
    mark_engine_start()
    _REGISTERED.append(_install(switches))
    LOGGER.info("moeplan probe: %s", ", ".join(name for name in ("hash", "count", "memory") if getattr(switches, name)))


def _install(switches: Switches) -> Session:
    assert switches.directory is not None, "read_switches asks for a directory"
    cache = own_compile_cache(switches.directory) if switches.count else None
    worker_class = require(*_WORKER)
    iterators: list[str] = []
    session = Session(switches, cache, iterators)
    if switches.hash:
        iterators += patch_iterators(session.hashing)
    _observe(worker_class, session)
    return session


def _observe(worker_class: Any, session: Session) -> None:
    """Have every worker of this process observed from its construction on, whatever class it is of."""
    construct = worker_class.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        construct(self, *args, **kwargs)
        session.watch(self)
        _after(self, "load_model", session.loaded)
        _after(self, "compile_or_warm_up_model", session.warmed_up)
        _before(self, "shutdown", session.closed)
        _around_steps(self, session)

    worker_class.__init__ = __init__


def _after(worker: Any, name: str, call: Callable[[], None]) -> None:
    original = method_of(worker, name)

    def method(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        call()
        return result

    setattr(worker, name, method)


def _before(worker: Any, name: str, call: Callable[[], None]) -> None:
    original = method_of(worker, name)

    def method(*args: Any, **kwargs: Any) -> Any:
        call()
        return original(*args, **kwargs)

    setattr(worker, name, method)


def _around_steps(worker: Any, session: Session) -> None:
    original = method_of(worker, "execute_model")

    def execute_model(scheduler_output: Any, *args: Any, **kwargs: Any) -> Any:
        steps = session.steps
        if steps is None:
            return original(scheduler_output, *args, **kwargs)
        steps.begin(int(scheduler_output.total_num_scheduled_tokens))
        try:
            return original(scheduler_output, *args, **kwargs)
        finally:
            steps.end()

    worker.execute_model = execute_model
