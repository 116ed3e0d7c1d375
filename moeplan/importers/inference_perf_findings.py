"""What a person should know about the requests of one inference-perf trial beyond their figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moeplan.importers.index_list import numbered
from moeplan.importers.inference_perf_request import AskedFor
from moeplan.importers.request_rows import RequestRow
from moeplan.importers.trial import TrialInputs
from moeplan.model.finding import Finding

__all__ = ["request_findings"]


def request_findings(
    rows: Sequence[RequestRow], successes: Sequence[bool], asked: Sequence[AskedFor], inputs: TrialInputs
) -> Iterator[Finding]:
    """Yield findings on outcomes and lengths.

    Args:
        rows: the trial's requests.
        successes: of each, whether the tool counts it as one.
        asked: of each, what its text says that it asked for.
        inputs: what was stated.
    """
    yield from _outcomes(rows, successes)
    yield from _lengths(rows, asked, inputs)
    if inputs.ignore_eos and any(each.ignore_eos is False for each in asked):
        message = "requests do not say ignore_eos, stated is the opposite"
        yield Finding("stated_ignore_eos_differs", "warning", message, None)


def _outcomes(rows: Sequence[RequestRow], successes: Sequence[bool]) -> Iterator[Finding]:
    good = [row for row, success in zip(rows, successes, strict=True) if success]
    failed = [row.index for row, success in zip(rows, successes, strict=True) if not success]
    broken = [row.index for row in good if row.outcome == "error" or not row.usage]
    other = [row.index for row in good if row.outcome == "truncated" and row.usage]
    if failed:
        message = f"{len(failed)} of {len(rows)} requests failed: requests {numbered(failed)}"
        yield Finding("failures_left_out", "warning", message, None)
    if broken:
        message = (
            f"{len(broken)} of {len(rows)} requests ended without the server's usage count, or after an error in the"
            f" stream; the tool counts them as successes, here they are failures: requests {numbered(broken)}"
        )
        yield Finding("truncated_counted_as_success", "warning", message, None)
    if other:
        message = (
            f"{len(other)} of {len(rows)} requests have a server usage count, but not of the tokens asked for as far as"
            f" is known: they count as truncated: requests {numbered(other)}"
        )
        yield Finding("output_length_differs", "warning", message, None)


def _lengths(rows: Sequence[RequestRow], asked: Sequence[AskedFor], inputs: TrialInputs) -> Iterator[Finding]:
    wanted = inputs.requested_output_tokens
    known = [each.tokens for each in asked if each.tokens is not None]
    others = [tokens for tokens in known if tokens != wanted]
    if others:
        message = (
            f"{len(others)} of {len(rows)} requests asked for other than the {wanted} tokens stated, from"
            f" {min(known)} to {max(known)}; each is judged by what it asked for"
        )
        yield Finding("requested_output_differs", "warning", message, None)
    unknown = len(rows) - len(known)
    if unknown and inputs.output_varies and inputs.ignore_eos:
        message = (
            f"the texts of {unknown} of {len(rows)} requests are cut: as stated, lengths vary, and the server's usage"
            " count is taken as what each asked for"
        )
        yield Finding("requested_output_varies", "warning", message, None)
    elif unknown:
        message = (
            f"the texts of {unknown} of {len(rows)} requests are cut: the {wanted} tokens stated are taken as asked"
            " for; state --output-varies where lengths were drawn from a distribution"
        )
        yield Finding("requested_output_stated", "info", message, None)
