"""The metric catalogue: what each number means, exactly how it is computed, and where the definition comes from.

One module a gate, and one for the hand-over that plugins' criteria ask for; of others a plugin brings its own.
``docs/metrics.md`` shows it.
"""

from __future__ import annotations

from moeplan.catalogue.metrics import artifact, economics, handoff, loading, memory, routing, service
from moeplan.catalogue.metrics.metric import Metric

__all__ = ["METRICS", "Metric"]

_GATES = (artifact, loading, memory, service, handoff, routing, economics)

METRICS: dict[str, Metric] = {metric.id: metric for gate in _GATES for metric in gate.METRICS}
"""Every core metric by id, in the order of the gates."""
