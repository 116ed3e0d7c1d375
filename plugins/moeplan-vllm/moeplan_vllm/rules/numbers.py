"""Rules about limits that hold each other: draft slots within a step's budget."""

from __future__ import annotations

from collections.abc import Iterator

from moeplan.facts.judge import Hit
from moeplan.facts.launches import Scene, Subject
from moeplan_vllm.rules.reading import count, known_text, place_of

__all__ = ["draft_slots"]


def draft_slots(scene: Scene) -> Iterator[Hit]:
    """C-SPC-004: a step has room for each sequence's token and its draft tokens."""
    for one in scene.engines():
        budget, sequences = count(one, "--max-num-batched-tokens", 0), count(one, "--max-num-seqs", 0)
        tokens = _draft_tokens(one)
        if not budget or not sequences or not tokens or budget > sequences * (1 + tokens):
            continue
        severity = None if budget <= sequences * tokens else "warning"
        message = (
            f"--max-num-batched-tokens {budget} for --max-num-seqs {sequences} with {tokens} draft tokens each: "
            f"more than {sequences * (1 + tokens)} are needed"
        )
        yield Hit(place_of(one, "argument --max-num-batched-tokens"), message, one, severity)


def _draft_tokens(subject: Subject) -> int | None:
    text = known_text(subject, "argument --speculative-config num_speculative_tokens")
    if text is None:
        text = known_text(subject, "argument --spec-tokens")
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 6 else None
