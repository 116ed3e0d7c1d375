"""lm-evaluation-harness's own figures of each measure against its samples, exactly.

Source: lm_eval 0.4.13, ``api/metrics.py``: ``mean``; ``mean_stderr`` = sample deviation / √n, which of right and wrong
answers is √(p(1-p)/(n-1)).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from moeplan.errors import escape
from moeplan.model.finding import Finding

__all__ = ["result_findings"]

_SLACK = Fraction(1, 10**9)

Measures = Mapping[str, Mapping[int, int]]


def result_findings(document: Mapping[str, Any], measures: Mapping[str, Measures]) -> Iterator[Finding]:
    """Yield an error for each figure that the samples do not bear out, and a warning where documents were left out.

    Args:
        document: the results file.
        measures: by task, then measure as the record names it: each document, 1 where the answer was right.
    """
    figures = _by_lower(document.get("results"))
    sizes = _by_lower(document.get("n-samples"))
    for task, of_task in measures.items():
        yield from _sizes(task, sizes.get(task), of_task)
        told = _by_lower(figures.get(task))
        for measure, values in of_task.items():
            metric, _, kept = measure.partition(".")
            suffix = kept or "none"
            count, right = len(values), sum(values.values())
            where = f"{task}, {measure}"
            yield from _compared(told.get(f"{metric},{suffix}"), Fraction(right, count), where)
            error = _number(told.get(f"{metric}_stderr,{suffix}"))
            if error is not None and count > 1:
                square = Fraction(right * (count - right), count * count * (count - 1))
                yield from _compared_square(error, square, where)


def _by_lower(entry: Any) -> dict[str, Any]:
    return {key.lower(): value for key, value in entry.items()} if type(entry) is dict else {}


def _number(value: Any) -> Fraction | None:
    return Fraction(value) if type(value) in (int, Decimal) else None


def _compared(value: Any, exact: Fraction, where: str) -> Iterator[Finding]:
    told = _number(value)
    if told is None:
        yield Finding("claim_missing", "warning", "the results hold no figure of this measure", where)
    elif abs(told - exact) > _SLACK:
        message = f"the results say {escape(str(value), 40)}, the samples give {exact} = {float(exact):.9g}"
        yield Finding("claim_mismatch", "error", message, where)


def _compared_square(told: Fraction, square: Fraction, where: str) -> Iterator[Finding]:
    """Compare a standard error by its square, so that no root is taken."""
    if abs(told * told - square) > 2 * _SLACK * max(square, _SLACK):
        message = f"the results say a standard error of {float(told):.9g}, its square by the samples is {square}"
        yield Finding("claim_mismatch", "error", message, where)


def _sizes(task: str, entry: Any, measures: Measures) -> Iterator[Finding]:
    size = entry if type(entry) is dict else {}
    original, effective = size.get("original"), size.get("effective")
    short = sorted(measure for measure, values in measures.items() if len(values) != effective)
    if type(effective) is int and short:
        message = f"the results are of {effective} documents, the samples of another number: {', '.join(short)}"
        yield Finding("documents_missing", "error", message, task)
    if type(original) is int and type(effective) is int and effective < original:
        message = f"{effective} of the task's {original} documents were asked"
        yield Finding("documents_limited", "warning", message, task)
