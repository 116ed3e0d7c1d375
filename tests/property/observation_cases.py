"""Observations that a case of ``evaluate`` may hold beside its trials, by name: sound ones, and ones with a fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from hypothesis import strategies as st

from moeplan.model.deployment import Deployment
from moeplan.model.observations import COMPLETE_ENVIRONMENT
from moeplan.model.plan import Plan
from moeplan.model.verified import VerifiedRecord, VerifiedSigner
from tests.property.last_gates_cases import LAST_GATES, SOUND_LAST_GATES
from tests.property.memory_cases import MEMORY, SOUND_MEMORY
from tests.property.service_cases import BOUND, SERVICE
from tests.unit.evaluation.loading_cases import LOG_ROWS, S, make_environment, make_log, make_smoke

__all__ = [
    "OBSERVATIONS",
    "SOUND_BOUND",
    "SOUND_LAST",
    "SOUND_LOADING",
    "SOUND_WATCHED",
    "ObservationRecipe",
    "observation_recipes",
]

Maker = Callable[..., VerifiedRecord]
_DIED = (*LOG_ROWS, ((11 * 3600 + 20) * S, "api-server", "fatal_engine_died", 3))
_NO_MEMORY = (*LOG_ROWS, (70 * S, "worker-tp1", "fatal_out_of_memory", 1))
_OTHER = tuple((t, who, name, 4 if name == "tensor_parallel_size" else value) for t, who, name, value in LOG_ROWS)
_DRAFTING = (*(row for row in LOG_ROWS if row[2] != "speculation"), (90 * S, "api-server", "draft_tokens", 9))

OBSERVATIONS: dict[str, Maker] = {
    "log": make_log,
    "log_cut": lambda plan, **record: make_log(plan, LOG_ROWS[3:], whole=False, **record),
    "log_short": lambda plan, **record: make_log(plan, seconds=600, **record),
    "log_slow": lambda plan, **record: make_log(plan, engine_start="2026-03-01T07:00:00Z", **record),
    "log_no_memory": lambda plan, **record: make_log(plan, _NO_MEMORY, **record),
    "log_died": lambda plan, **record: make_log(plan, _DIED, **record),
    "log_other": lambda plan, **record: make_log(plan, _OTHER, **record),
    "log_drafting": lambda plan, **record: make_log(plan, _DRAFTING, **record),
    "log_of_prefill": lambda plan, **record: make_log(plan, role="prefill", **record),
    "log_of_cluster": lambda plan, **record: make_log(plan, _NO_MEMORY[-1:], engine="kubernetes", **record),
    "environment": make_environment,
    "environment_without_driver": lambda plan, **record: make_environment(
        plan, set(COMPLETE_ENVIRONMENT) - {"driver"}, **record
    ),
    "environment_of_b": lambda plan, **record: make_environment(plan, node="node-b", **record),
    "smoke": lambda plan, **record: make_smoke(plan, **record),
    "smoke_late": lambda plan, **record: make_smoke(plan, outcome="late", **record),
    **LAST_GATES,
    **MEMORY,
    **SERVICE,
}
"""Each makes a record for a plan; keywords are those of ``make_observation``."""


@attrs.frozen
class ObservationRecipe:
    """One observation to be made, who signs it and on which deployment it was made."""

    name: str
    signers: str = "runner"
    deployment: str = "planned"

    def build(
        self, plan: Plan, signers: dict[str, tuple[VerifiedSigner, ...]], deployments: dict[str, Deployment]
    ) -> VerifiedRecord:
        """Return the record."""
        record: dict[str, Any] = {"signers": signers[self.signers], "deployment": deployments[self.deployment]}
        return OBSERVATIONS[self.name](plan, **record)


SOUND_LOADING = tuple(ObservationRecipe(name) for name in ("log", "environment", "smoke"))
"""What ``runtime_load`` needs."""
SOUND_LAST = tuple(ObservationRecipe(name) for name in SOUND_LAST_GATES)
"""What ``routing_health`` and ``economics_resilience`` need."""
SOUND_WATCHED = tuple(ObservationRecipe(name) for name in SOUND_MEMORY)
"""What ``memory_envelope`` needs."""
SOUND_BOUND = tuple(ObservationRecipe(name) for name in BOUND)
"""What binds trials ``loaded``."""


def observation_recipes() -> st.SearchStrategy[tuple[ObservationRecipe, ...]]:
    """Return a strategy of what a case holds beside its trials: often all that a gate needs and something more."""
    one = st.builds(
        ObservationRecipe,
        name=st.sampled_from(sorted(OBSERVATIONS)),
        signers=st.sampled_from(["runner", "runner", "runner", "nobody", "stranger"]),
        deployment=st.sampled_from(["planned"] * 6 + ["nodes", "arguments"]),
    )
    more = st.lists(one, max_size=4).map(tuple)
    whole = (*SOUND_LOADING, *SOUND_WATCHED, *SOUND_LAST)
    sound = st.sampled_from([SOUND_LOADING, SOUND_LAST, SOUND_WATCHED, SOUND_BOUND, whole])
    return st.one_of(more, st.tuples(sound, more).map(lambda parts: (*parts[0], *parts[1])))
