"""Policies from an auditor's inputs, and what they demand in sentences."""

from __future__ import annotations

import pytest

from moeplan.attest.policies import DEFAULT_BINDINGS, expect_subject, explain_policy, make_signer
from moeplan.errors import InputError
from moeplan.model.plan import GATE_IDS
from moeplan.model.policy import Policy, Waiver
from moeplan.signing.keys import PrivateKey, fingerprint, public_key_of, public_pem
from moeplan.wire.documents import dump_document, load_document
from tests.build import (
    RUNTIME,
    build_plan,
    digest_of,
    make_checkpoint,
    make_expectations,
    make_policy,
    make_spec,
    ready_case,
)
from tests.unit.attest.conftest import policy_of, signer_of

PLAN = build_plan()


class TestMakeSigner:
    def test_a_key_in_pem_becomes_a_signer(self, key: PrivateKey) -> None:
        pem = public_pem(public_key_of(key))
        found = make_signer("lab", pem.encode(), ["runner"], fingerprint(public_key_of(key)))
        assert found == signer_of("lab", key, "runner")

    def test_another_line_width_is_the_same_signer(self, key: PrivateKey) -> None:
        lines = public_pem(public_key_of(key)).splitlines()
        wide = "\n".join([lines[0], "".join(lines[1:-1]), lines[-1]]) + "\n"
        assert make_signer("lab", wide.encode(), ["runner"]) == signer_of("lab", key, "runner")

    def test_another_fingerprint_than_expected(self, key: PrivateKey, other_key: PrivateKey) -> None:
        pem = public_pem(public_key_of(key)).encode()
        expected = fingerprint(public_key_of(other_key))
        with pytest.raises(InputError) as caught:
            make_signer("lab", pem, ["runner"], expected)
        (issue,) = caught.value.issues
        assert (issue.code, issue.expected, issue.got) == (
            "fingerprint_mismatch",
            expected,
            fingerprint(public_key_of(key)),
        )

    @pytest.mark.parametrize("pem", [b"", b"-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n"])
    def test_no_key(self, pem: bytes) -> None:
        with pytest.raises(InputError) as caught:
            make_signer("lab", pem, ["runner"])
        assert caught.value.issues[0].code == "key_malformed"

    def test_no_such_role(self, key: PrivateKey) -> None:
        with pytest.raises(InputError):
            make_signer("lab", public_pem(public_key_of(key)).encode(), ["owner"])


class TestExpectSubject:
    def test_exactly_the_plans_subject(self) -> None:
        assert expect_subject(PLAN, None, []) == make_expectations(PLAN)
        assert expect_subject(PLAN, make_checkpoint(), [RUNTIME.digest]) == make_expectations(PLAN)

    def test_a_policy_with_it_finds_the_ready_case_ready(self) -> None:
        expects = expect_subject(PLAN, None, [])
        assert ready_case().but_policy(expects=expects).judge().readiness == "ready"

    def test_a_checkpoint_of_ones_own_comes_before_the_plans(self) -> None:
        other = make_checkpoint(tensor_bytes=1000)
        assert expect_subject(PLAN, other, []).checkpoint_roots == (other.root,)

    def test_an_open_plan_expects_only_what_is_given(self) -> None:
        plan = build_plan(checkpoint=None, deployment=make_spec(None))
        found = expect_subject(plan, None, [digest_of("b"), digest_of("a"), digest_of("a")])
        assert found.checkpoint_roots == ()
        assert found.runtimes == tuple(sorted([digest_of("a"), digest_of("b")]))

    def test_an_undeclared_cache_share_is_not_looked_at(self) -> None:
        plan = build_plan(prefix_cache_share_basis_points=None)
        assert expect_subject(plan, None, []).workload.prefix_cache_share_basis_points_at_most is None


class TestExplain:
    def test_a_policy_that_trusts_nobody(self) -> None:
        sentences = explain_policy(policy_of())
        assert "It trusts nobody, so every bundle is refused." in sentences
        assert "It expects no subject, so nothing is ever ready under it." in sentences
        assert not any("TEST" in sentence for sentence in sentences)

    def test_test_keys_come_first(self) -> None:
        assert explain_policy(policy_of(test_keys=True))[0].startswith("TEST POLICY:")

    def test_each_signer_and_what_for(self, key: PrivateKey, other_key: PrivateKey) -> None:
        mine, other = signer_of("lab", key, "runner"), signer_of("desk", other_key, "packer", "verifier")
        sentences = explain_policy(policy_of(mine, other))
        assert f"lab may sign measurements; key {mine.fingerprint}." in sentences
        assert f"desk may sign the bundle's index, sign verdicts; key {other.fingerprint}." in sentences

    def test_every_expectation_is_said(self) -> None:
        said = "\n".join(explain_policy(make_policy(PLAN)))
        expects = make_expectations(PLAN)
        for value in (*expects.checkpoint_roots, *expects.models, *expects.hardware, *expects.runtimes):
            assert value in said
        assert "At most 8 accelerator(s)." in said
        assert "at least 32 input tokens, 5 output tokens and concurrency 4" in said
        assert "at most 1,000 ms to the first token and 50 ms between tokens" in said
        assert "prefix-cache share of at most 5.00%" in said

    def test_an_empty_expectation_is_said_to_be_met_by_nothing(self) -> None:
        plan = build_plan(checkpoint=None, deployment=make_spec(None))
        sentences = explain_policy(make_policy(plan, expects=expect_subject(plan, None, [])))
        assert "No checkpoint roots are accepted, so nothing is ready." in sentences
        assert "No runtime identities are accepted, so nothing is ready." in sentences

    def test_each_gates_binding_and_each_waiver(self) -> None:
        waiver = Waiver("load.ready", "the log was lost", "2026-06-01T00:00:00Z")
        sentences = explain_policy(make_policy(PLAN, waivers=(waiver,), least_binding=DEFAULT_BINDINGS))
        assert "load.ready is waived until 2026-06-01T00:00:00Z: the log was lost" in sentences
        bindings = [sentence for sentence in sentences if sentence.startswith("Evidence of ")]
        assert [sentence.split()[2] for sentence in bindings] == list(GATE_IDS)
        assert sum("files were hashed before the engine started" in sentence for sentence in bindings) == 5
        assert "Evidence of static_residency must name the immutable revision" in "\n".join(bindings)

    def test_the_default_bindings_make_a_valid_policy(self) -> None:
        policy = make_policy(PLAN, least_binding=DEFAULT_BINDINGS)
        assert load_document(dump_document(policy), Policy) == policy
        assert ready_case().but_policy(least_binding=DEFAULT_BINDINGS).judge().readiness == "ready"
