"""``moeplan plan --batch``: lines in, lines out, in order; large inputs on every core."""

from __future__ import annotations

import gc
import os
import sys
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import closing, contextmanager
from itertools import chain, islice
from multiprocessing import get_context
from typing import BinaryIO

from moeplan.cli.output import emit_bytes, note
from moeplan.errors import Issue, StoreError
from moeplan.model.registry import Registry
from moeplan.planning.batch import Batch, Chunk, plan_chunk, read_chunks

__all__ = ["run_batch"]

_FEW_CHUNKS = 8
"""Inputs of up to this many chunks are planned in this process; starting others takes longer."""


def run_batch(registry: Registry, source: str, output: str | None, form: str, envelope: bool) -> int:
    """Plan every line of ``source`` and return the exit code: 2 where any line was in error, else 0.

    Args:
        registry: the registry to plan with.
        source: path of a JSON Lines file, ``-`` for standard input.
        output: path to write, whole or not at all; None for standard output.
        form: form of the plans.
        envelope: wrap form 1.0.0.
    """
    errors = 0
    broken: OSError | None = None

    def written(batches: Iterator[Batch]) -> Iterator[bytes]:
        nonlocal errors
        for batch in batches:
            errors += batch.errors
            yield batch.data

    with _opened(source) as stream, closing(_planned(registry, read_chunks(stream), form, envelope)) as planned:
        chunks = written(planned)
        if output is None:
            for data in chunks:
                try:
                    emit_bytes(data)
                except OSError as error:  # the file that is being read would take it for its own
                    broken = error
                    break
        else:
            from moeplan.wire.files import write_chunks

            write_chunks(output, chunks)
    if broken is not None:
        raise broken
    if errors:
        note(f"error: {errors} line(s) gave no plan; each has an error object in its place")
    return 2 if errors else 0


@contextmanager
def _opened(source: str) -> Iterator[BinaryIO]:
    if source == "-":
        if sys.stdin is None:  # closed by the caller
            raise StoreError(Issue("stdin", "file_read", "cannot read: standard input is closed", "an open input"))
        yield sys.stdin.buffer
        return
    from moeplan.wire.files import open_regular

    with open_regular(source) as stream:
        yield stream


def _planned(registry: Registry, chunks: Iterator[Chunk], form: str, envelope: bool) -> Generator[Batch, None, None]:
    first = list(islice(chunks, _FEW_CHUNKS + 1))
    workers = os.process_cpu_count() if hasattr(os, "process_cpu_count") else len(os.sched_getaffinity(0))
    if len(first) <= _FEW_CHUNKS or (workers or 1) < 2:
        for chunk in chain(first, chunks):
            yield plan_chunk(registry, chunk, form, envelope)
        return
    # Workers start as copies of this process, with the registry loaded; it runs no other thread at this point.
    context = get_context("fork")
    with ProcessPoolExecutor(workers, context, initializer=_start, initargs=(registry, form, envelope)) as pool:
        waiting: deque[Future[Batch]] = deque()
        for chunk in chain(first, chunks):
            waiting.append(pool.submit(_work, chunk))
            if len(waiting) > 4 * (workers or 1):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


_job: tuple[Registry, str, bool]


def _start(registry: Registry, form: str, envelope: bool) -> None:
    global _job
    _job = (registry, form, envelope)
    # Plans hold no cycles: looking for some takes a fifth of the time. Rarely, for the few that errors leave behind.
    gc.freeze()
    gc.set_threshold(100_000)


def _work(chunk: Chunk) -> Batch:
    registry, form, envelope = _job
    return plan_chunk(registry, chunk, form, envelope, alone=True)
