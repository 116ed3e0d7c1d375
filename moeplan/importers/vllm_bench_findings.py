"""What a person should know about one ``vllm bench serve`` trial beyond its figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from moeplan.evaluation.trials import concurrency_peak
from moeplan.importers.index_list import numbered
from moeplan.importers.trial import TrialInputs
from moeplan.model.evidence import Claim
from moeplan.model.finding import Finding
from moeplan.model.tables import RequestTable

__all__ = ["trial_findings"]


def trial_findings(
    requests: RequestTable, inputs: TrialInputs, claims: Sequence[Claim], *, cap: int | None, usage: bool, queued: bool
) -> Iterator[Finding]:
    """Yield findings on outcomes, lengths, concurrency and what the file leaves out.

    Args:
        requests: the trial's request table.
        inputs: what was stated.
        claims: what the tool reported.
        cap: the concurrency cap in the tool's file.
        usage: whether the tool asked the server for its token counts.
        queued: whether the file holds the client's waiting times.
    """
    yield from _outcomes(requests)
    yield from _lengths(requests, inputs)
    yield from _concurrency(requests, inputs, claims, cap)
    if not usage:
        yield Finding(
            "no_server_usage",
            "warning",
            "this backend does not ask for the server's usage: token counts are the client's",
            None,
        )
    if not queued:
        yield Finding(
            "queue_times_missing",
            "info",
            "the file holds no queue_times; the client's wait before sending is taken as 0",
            None,
        )


def _outcomes(requests: RequestTable) -> Iterator[Finding]:
    count = len(requests)
    failed, truncated = (_places(requests, outcome) for outcome in ("error", "truncated"))
    kept = sum(
        outcome == "error" and chunks > 0 for outcome, chunks in zip(requests.outcome, requests.chunks, strict=True)
    )
    if failed:
        yield Finding(
            "failed_requests",
            "warning",
            f"{len(failed)} of {count} requests failed ({kept} of them after their first chunk); the tool's percentiles"
            f" leave them out, and its throughput divides by the whole duration: requests {numbered(failed)}",
            None,
        )
    if truncated:
        yield Finding(
            "truncated_counted_as_success",
            "warning",
            f"{len(truncated)} of {count} requests ended without an error and without the tokens asked for; the tool"
            f" counts them as successes, here they are failures: requests {numbered(truncated)}",
            None,
        )


def _places(requests: RequestTable, outcome: str) -> list[int]:
    """Return the places in the file of the requests with an outcome, ascending."""
    return sorted(place for place, each in zip(requests.request, requests.outcome, strict=True) if each == outcome)


def _lengths(requests: RequestTable, inputs: TrialInputs) -> Iterator[Finding]:
    wanted = inputs.requested_output_tokens
    told = [
        tokens for tokens, outcome in zip(requests.output_tokens, requests.outcome, strict=True) if outcome != "error"
    ]
    if told and wanted not in told:
        yield Finding(
            "requested_output_differs",
            "warning",
            f"no request generated the {wanted} tokens stated as requested; check --requested-output",
            None,
        )
    short = sum(tokens < wanted for tokens in told)
    if inputs.ignore_eos or not short:
        return
    if inputs.accept_early_stop:
        message = (
            f"{short} requests with fewer than {wanted} tokens are taken as stops of the model's own, as stated; the"
            " file holds no finish reason, and a broken stream would look the same"
        )
        yield Finding("early_stops_accepted", "warning", message, None)
    else:
        message = (
            f"{short} requests have fewer than {wanted} tokens and the file holds no finish reason: they count as"
            " truncated; state --accept-early-stop if stops of the model's own are expected"
        )
        yield Finding("early_stop_unknown", "warning", message, None)


def _concurrency(
    requests: RequestTable, inputs: TrialInputs, claims: Sequence[Claim], cap: int | None
) -> Iterator[Finding]:
    observed = concurrency_peak(requests)
    if inputs.concurrency is None and cap is not None:
        yield Finding(
            "concurrency_from_file", "info", f"no --concurrency stated; the file's max_concurrency {cap} is taken", None
        )
    elif inputs.concurrency is not None and cap not in (None, inputs.concurrency):
        message = f"stated concurrency {inputs.concurrency}, the file's max_concurrency is {cap}"
        yield Finding("stated_concurrency_differs", "warning", message, None)
    for claim in claims:
        if claim.name == "max_concurrent_requests" and Decimal(claim.value) != observed:
            yield Finding(
                "concurrency_claim_differs",
                "info",
                f"the tool reports {claim.value} concurrent requests, {observed} overlap at most: over successes, it"
                " counts every request that touched the same whole second, in flight together or not",
                claim.name,
            )
