"""What the catalogue says of one metric, and the phrases that several metrics share."""

from __future__ import annotations

import attrs

__all__ = ["MOEPLAN", "ONE_VALUE", "PER_RECORD", "PER_TRIAL", "Metric"]


@attrs.frozen
class Metric:
    """One metric.

    Attributes:
        id: the name criteria use.
        title: a few words for people.
        unit: unit of the value; ``digest``, ``identity`` and ``state`` are compared as text.
        definition: what is measured.
        computation: exactly how, from which data; integers only.
        independence: what counts as one independent observation, and what is assumed.
        source: where the definition comes from.
    """

    id: str
    title: str
    unit: str
    definition: str
    computation: str
    independence: str
    source: str


MOEPLAN = "moeplan"
ONE_VALUE = "one value; nothing is sampled"
PER_RECORD = "one record; nothing is assumed about others"
PER_TRIAL = "one trial; trials are judged alone and all must pass"
