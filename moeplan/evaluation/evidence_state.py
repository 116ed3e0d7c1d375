"""What stands in the way of a pass: evidence taken away, of another deployment, unsigned, later than the instant."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TypeVar

import attrs

from moeplan.evaluation.binding import Contents, contents, differing_tensors, is_whole
from moeplan.evaluation.trials import counter_differences
from moeplan.model.checkpoint import CheckpointManifest
from moeplan.model.evidence import CheckpointDigest, ServingTrial
from moeplan.model.observations import LoadedBytes
from moeplan.model.plan import BINDINGS, Plan
from moeplan.model.policy import Policy
from moeplan.model.verified import EvidenceSet, VerifiedRecord, VerifiedRun
from moeplan.units import NS_PER_S, parse_instant

__all__ = ["State", "deployment_digests", "digest_leads"]


@attrs.frozen(slots=False)
class State:
    """The evidence of one evaluation, with what each part of it lacks.

    Attributes:
        deployments: identity of each record's deployment, by record digest (computed by the caller, who may hash).
    """

    plan: Plan
    plan_digest: str
    evidence: EvidenceSet
    policy: Policy
    at: str
    deployments: dict[str, str]

    @cached_property
    def records(self) -> tuple[VerifiedRecord, ...]:
        """Records, each once, in an order that does not depend on how they were given."""
        return tuple(sorted(_each_once(self.evidence.records), key=_record_order))

    @cached_property
    def runs(self) -> tuple[VerifiedRun, ...]:
        """Run manifests, each once, in an order that does not depend on how they were given."""
        return tuple(sorted(_each_once(self.evidence.runs), key=lambda run: (run.manifest.run, run.digest)))

    @cached_property
    def present(self) -> frozenset[str]:
        """Digests of everything that is here: records, run manifests, the checkpoint manifest."""
        here = {item.digest for item in self.records} | {run.digest for run in self.runs}
        if self.evidence.checkpoint is not None and self.evidence.checkpoint_digest is not None:
            here.add(self.evidence.checkpoint_digest)
        return frozenset(here)

    @cached_property
    def trials(self) -> tuple[VerifiedRecord, ...]:
        """Serving trials, by run and number."""
        return tuple(item for item in self.records if isinstance(item.record.payload, ServingTrial))

    @cached_property
    def digestions(self) -> tuple[VerifiedRecord, ...]:
        """Records that a node's checkpoint files were hashed."""
        return tuple(item for item in self.records if isinstance(item.record.payload, CheckpointDigest))

    @cached_property
    def present_types(self) -> frozenset[str]:
        """Evidence types there is at least one document of."""
        manifest = {"checkpoint_manifest"} if self.evidence.checkpoint is not None else set()
        return frozenset({item.record.type for item in self.records} | manifest)

    @cached_property
    def taken_away(self) -> tuple[str, ...]:
        """Digests that the inventory or a run manifest lists and that are not here."""
        wanted = set(self.evidence.listed)
        for run in self.runs:
            wanted |= {trial.record for trial in run.manifest.trials if trial.record is not None}
            wanted |= {part.record for part in run.manifest.observations if part.record is not None}
        return tuple(sorted(wanted - self.present))

    def of_type(self, *types: str) -> tuple[VerifiedRecord, ...]:
        """Return the records of the named types, in their order."""
        return tuple(item for item in self.records if item.record.type in types)

    def obstacle(self, records: tuple[VerifiedRecord, ...]) -> str | None:
        """Return why these records are not about the plan at this instant, or None. They then decide nothing."""
        checks = (
            (len(set(self.deployments.values())) > 1, "mixed_deployments"),
            (any(item.record.plan != self.plan_digest for item in records), "other_plan"),
            (any(not self._of_checkpoint(item) for item in records), "other_checkpoint"),
            (any(not self._of_runtime(item) for item in records), "other_runtime"),
            (any(self._more_accelerators(item) for item in records), "more_accelerators"),
            (
                any(parse_instant(item.record.interval.end) > parse_instant(self.at) for item in records),
                "after_instant",
            ),
        )
        return next((reason for holds, reason in checks if holds), None)

    def doubt(self, records: tuple[VerifiedRecord, ...]) -> str | None:
        """Return why these records cannot make a criterion pass, though they can make it fail; or None.

        A failure nobody vouches for stays one: were it inconclusive, taking a signature away would unblock later gates.
        """
        if self.taken_away:
            return "evidence_taken_away"
        return None if all(self._signed(item) for item in records) else "no_trusted_runner"

    def _of_checkpoint(self, item: VerifiedRecord) -> bool:
        deployment = item.record.deployment
        planned = self.plan.artifact.checkpoint
        if planned is not None and deployment.checkpoint_root != planned.root:
            return False
        manifest = self.evidence.checkpoint
        if manifest is not None and deployment.checkpoint_root != manifest.root:
            return False
        return deployment.draft_checkpoint_root == self.plan.deployment.draft_checkpoint_root

    def _of_runtime(self, item: VerifiedRecord) -> bool:
        planned = [role.runtime for role in self.plan.deployment.roles if role.runtime is not None]
        return all(runtime in item.record.deployment.runtimes for runtime in planned)

    def _more_accelerators(self, item: VerifiedRecord) -> bool:
        named = item.record.deployment.accelerators
        return named is not None and len(set(named)) > self.plan.target.requested_accelerators

    def _signed(self, item: VerifiedRecord | VerifiedRun) -> bool:
        trusted = {signer.fingerprint: signer.roles for signer in self.policy.signers}
        return any("runner" in trusted.get(signer.fingerprint, ()) for signer in item.signers)

    def run_obstacle(self) -> str | None:
        """Return why the runs that trials belong to cannot make a trial criterion pass, or None."""
        runs = {run.manifest.run: run for run in self.runs}
        if len(runs) < len(self.runs):
            return "run_named_twice"
        if len({_raw_requests(item) for item in self.trials}) < len(self.trials):
            return "trial_repeated"
        if _overlap(self.trials):
            return "trials_overlap"
        for item in self.trials:
            payload = item.record.payload
            assert isinstance(payload, ServingTrial)
            run = runs.get(payload.trial.run)
            if run is None:
                return "run_manifest_missing"
            if not self._signed(run):
                return "no_trusted_runner"
            if not _belongs(item, payload, run, self.deployments[item.digest]):
                return "not_of_its_run"
        for run in self.runs:
            if run.manifest.plan != self.plan_digest:
                return "other_plan"
            if run.manifest.state != "closed":
                return "run_not_closed"
            if any(trial.state != "complete" or trial.record is None for trial in run.manifest.trials):
                return "trial_aborted"
            if len(run.manifest.trials) < run.manifest.planned_trials:
                return "trials_missing"
        return self.run_doubt(self.trials)

    def run_doubt(self, records: tuple[VerifiedRecord, ...]) -> str | None:
        """Return why the runs that these observations belong to cannot make a criterion pass, or None.

        A record need not belong to a run; a run that began an observation of its type and left no record of it, or was
        not closed, leaves the whole type inconclusive.
        """
        types = {item.record.type for item in records}
        for run in self.runs:
            parts = [part for part in run.manifest.observations if part.type in types]
            if any(part.record is None for part in parts):
                return "observation_aborted"
            if parts and run.manifest.state != "closed":
                return "run_not_closed"
            if parts and not self._signed(run):
                return "no_trusted_runner"
        return None

    def binding_of(self, records: tuple[VerifiedRecord, ...]) -> str:
        """Return how strongly these records are tied to the checkpoint, the weakest of them: one of ``BINDINGS``.

        A price says nothing of the checkpoint, so that it weakens nothing it stands beside.
        """
        tied = tuple(item for item in records if item.record.type != "price") or records
        return min((self._binding(item) for item in tied), key=BINDINGS.index, default=BINDINGS[0])

    @cached_property
    def trial_binding(self) -> str:
        """How strongly the trials are tied to the checkpoint, the weakest of them: one of ``BINDINGS``."""
        return self.binding_of(self.trials)

    def _binding(self, item: VerifiedRecord) -> str:
        payload = item.record.payload
        if isinstance(payload, ServingTrial):
            assert item.requests is not None
            if counter_differences(item.requests, payload)[0] != 0:
                return BINDINGS[0]
        if not self._of_checkpoint(item) or self.evidence.checkpoint is None:
            return BINDINGS[0]
        if self._hashed(item):
            return "loaded" if item.record.engine_start in self._loaded_starts else "hashed"
        return self.manifest_binding()

    @cached_property
    def counted_starts(self) -> frozenset[str | None]:
        """Engine starts in which experts were counted, as far as any record says so, whoever signed it."""
        counted = {item.record.engine_start for item in self.of_type("expert_counts")}
        for item in self.loadings:
            payload = item.record.payload
            if isinstance(payload, LoadedBytes) and payload.counting:
                counted.add(item.record.engine_start)
        return frozenset(counted - {None})

    @cached_property
    def loadings(self) -> tuple[VerifiedRecord, ...]:
        """Records of bytes hashed in an engine while it loaded them."""
        return self.of_type("loaded_bytes")

    @cached_property
    def _file_contents(self) -> Contents:
        return contents(item.tensors for item in self.digestions)

    @cached_property
    def differing_tensors(self) -> int | None:
        """Tensors that any engine start loaded otherwise than the files hold them; None where none can be compared.

        Whoever signed it: a difference nobody vouches for stays one.
        """
        loaded = contents(item.tensors for item in self.loadings)
        compared = loaded.keys() & self._file_contents.keys()
        return differing_tensors(loaded, self._file_contents) if compared else None

    @cached_property
    def _loaded_starts(self) -> frozenset[str]:
        """Engine starts that loaded exactly the checkpoint's tensors, by records of trusted runners.

        Records that nobody trusted signed cannot show it, and can speak against it.
        """
        manifest = self.evidence.checkpoint
        if manifest is None or not self.loadings or self.differing_tensors != 0 or self.run_doubt(self.loadings):
            return frozenset()
        vouched = contents(item.tensors for item in self.digestions if self._vouched(item))
        starts = {item.record.engine_start for item in self.loadings}
        return frozenset(start for start in starts if start is not None and self._is_loaded(start, vouched, manifest))

    def _is_loaded(self, start: str, files: Contents, manifest: CheckpointManifest) -> bool:
        told = [item for item in self.loadings if item.record.engine_start == start]
        trusted = contents(item.tensors for item in told if self._vouched(item))
        return is_whole(trusted, files, manifest) and contents(item.tensors for item in told) == trusted

    def _vouched(self, item: VerifiedRecord) -> bool:
        return self._signed(item) and self.obstacle((item,)) is None

    def manifest_binding(self) -> str:
        """Return the binding of the checkpoint manifest alone: ``revision`` where it names the plan's revision."""
        manifest, artifact = self.evidence.checkpoint, self.plan.artifact
        named = manifest is not None and (manifest.repository, manifest.revision) == (
            artifact.repository,
            artifact.revision,
        )
        return "revision" if named else "declared"

    def _hashed(self, item: VerifiedRecord) -> bool:
        nodes = item.record.deployment.nodes
        trusted = tuple(digestion for digestion in self.digestions if self._vouched(digestion))
        leads = digest_leads(item, trusted)
        return bool(nodes) and leads is not None and all(node in leads and leads[node] >= 0 for node in nodes or ())


def digest_leads(item: VerifiedRecord, digestions: tuple[VerifiedRecord, ...]) -> dict[str, int] | None:
    """Return, per node, the seconds between the end of its hashing and the engine start that served ``item``.

    None where the record names no engine start. Of several hashings of a node the latest before the start counts,
    or the earliest of all where none was before.
    """
    start = item.record.engine_start
    if start is None:
        return None
    leads: dict[str, int] = {}
    for digestion in digestions:
        payload = digestion.record.payload
        assert isinstance(payload, CheckpointDigest)
        if payload.root != item.record.deployment.checkpoint_root:
            continue
        lead = parse_instant(start) - parse_instant(digestion.record.interval.end)
        best = leads.get(payload.node)
        if best is None or (lead >= 0 and (best < 0 or lead < best)) or (lead < 0 and best < lead):
            leads[payload.node] = lead
    return leads


def _raw_requests(item: VerifiedRecord) -> str:
    return next((part.digest for part in item.record.attachments if part.role == "requests"), item.digest)


def _overlap(trials: tuple[VerifiedRecord, ...]) -> bool:
    """Return whether two trials certainly ran at the same time.

    An interval encloses its trial with some slack, so only an overlap longer than the slack of both is certain.
    """
    spans = []
    for item in trials:
        payload = item.record.payload
        assert isinstance(payload, ServingTrial)
        start, end = parse_instant(item.record.interval.start), parse_instant(item.record.interval.end)
        spans.append((start, end, (end - start) * NS_PER_S - payload.duration_ns))
    spans.sort()
    for index, (_, end, slack) in enumerate(spans):
        for other_start, other_end, other_slack in spans[index + 1 :]:
            if other_start >= end:
                break
            if (min(end, other_end) - other_start) * NS_PER_S > slack + other_slack:
                return True
    return False


Signed = TypeVar("Signed", VerifiedRecord, VerifiedRun)


def _each_once(items: Iterable[Signed]) -> tuple[Signed, ...]:
    """Return items of different digests; what is given twice has the signers of both."""
    found: dict[str, Signed] = {}
    for item in items:
        known = found.get(item.digest)
        found[item.digest] = item if known is None else attrs.evolve(item, signers=known.signers + item.signers)
    return tuple(found.values())


def _record_order(item: VerifiedRecord) -> tuple[str, str, int, str]:
    payload = item.record.payload
    if isinstance(payload, ServingTrial):
        return (payload.type, payload.trial.run, payload.trial.number, item.digest)
    node = payload.node if isinstance(payload, CheckpointDigest) else ""
    return (payload.type, node, 0, item.digest)


def _belongs(item: VerifiedRecord, payload: ServingTrial, run: VerifiedRun, deployment: str) -> bool:
    manifest = run.manifest
    listed = [trial for trial in manifest.trials if trial.record == item.digest]
    files = {attachment.digest for attachment in item.record.attachments}
    return (
        len(listed) == 1
        and listed[0].number == payload.trial.number
        and files == set(listed[0].files)
        and manifest.deployment == deployment
        and manifest.planned_requests == payload.request_count
        and (
            manifest.requested_input_tokens,
            manifest.requested_output_tokens,
            manifest.declared_concurrency,
            manifest.warmup_requests,
        )
        == (
            payload.requested_input_tokens,
            payload.requested_output_tokens,
            payload.declared_concurrency,
            payload.warmup_requests,
        )
    )


def deployment_digests(evidence: EvidenceSet) -> dict[str, str]:
    """Return the identity of each record's deployment, by record digest."""
    from moeplan.wire.documents import identify

    return {item.digest: identify(item.record.deployment) for item in evidence.records}
