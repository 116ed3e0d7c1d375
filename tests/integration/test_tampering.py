"""Whatever is changed in a signed bundle is refused, with the right step named; exit 4."""

from __future__ import annotations

import io
import json
import random
import shutil
from pathlib import Path

import pytest

from moeplan.auditing.audit import audit
from moeplan.auditing.steps import Steps
from moeplan.auditing.verification import verify_evidence_bundle
from moeplan.cli.main import main
from moeplan.errors import VerificationError
from moeplan.model.policy import Policy
from moeplan.wire.documents import load_document

FLIPS = 200
"""Random single-byte changes tried in each file."""

STEP_OF = {
    "bundle.json": {"index"},
    "attestations": {"attestation_form", "signatures", "index"},
    "other": {"inventory"},
}


@pytest.fixture(scope="module")
def policy(demo: Path) -> Policy:
    return load_document((demo / "policy.json").read_bytes(), Policy)


@pytest.fixture
def copy(demo: Path, tmp_path: Path) -> Path:
    shutil.copytree(demo / "bundle", tmp_path / "bundle")
    return tmp_path / "bundle"


def failed_step(path: Path, policy: Policy) -> str | None:
    """Return the name of the step that refused the bundle, or None where it was accepted."""
    steps = Steps()
    try:
        verify_evidence_bundle(path, policy, steps)
    except VerificationError:
        assert steps.done[-1].outcome == "failed"
        return steps.done[-1].name
    return None


def files_of(bundle: Path) -> list[str]:
    return sorted(str(path.relative_to(bundle)) for path in bundle.rglob("*") if path.is_file())


def allowed(path: str) -> set[str]:
    return STEP_OF.get(path) or STEP_OF["attestations" if path.startswith("attestations/") else "other"]


def test_the_untouched_bundle_is_accepted(demo: Path, policy: Policy) -> None:
    assert failed_step(demo / "bundle", policy) is None
    assert failed_step(demo / "bundle.tar", policy) is None


def test_every_byte_counts_in_a_directory(copy: Path, policy: Policy) -> None:
    source = random.Random(20261130)
    for name in files_of(copy):
        target = copy / name
        good = target.read_bytes()
        for _ in range(FLIPS):
            at = source.randrange(len(good))
            target.write_bytes(good[:at] + bytes([good[at] ^ source.randrange(1, 256)]) + good[at + 1 :])
            step = failed_step(copy, policy)
            assert step in allowed(name), f"{name} changed at {at}: {step}"
        target.write_bytes(good)
    assert failed_step(copy, policy) is None


def test_every_byte_counts_in_a_tar(demo: Path, tmp_path: Path, policy: Policy) -> None:
    source = random.Random(42)
    good = (demo / "bundle.tar").read_bytes()
    target = tmp_path / "bundle.tar"
    places = [source.randrange(len(good)) for _ in range(FLIPS)]
    places += [512 * source.randrange(len(good) // 512) + source.randrange(512) for _ in range(FLIPS)]
    places += [len(good) - 1 - source.randrange(1024) for _ in range(20)]
    for at in places:
        target.write_bytes(good[:at] + bytes([good[at] ^ source.randrange(1, 256)]) + good[at + 1 :])
        step = failed_step(target, policy)
        assert step in {"container", "attestation_form", "signatures", "index", "inventory"}, f"changed at {at}: {step}"


def test_every_file_is_missed(copy: Path, policy: Policy) -> None:
    for name in files_of(copy):
        target = copy / name
        good = target.read_bytes()
        target.unlink()
        step = failed_step(copy, policy)
        assert step in {"index", "inventory"}, f"{name} removed: {step}"
        target.write_bytes(good)


def test_no_file_can_be_added(copy: Path, policy: Policy) -> None:
    for name, step in (
        ("policy.json", "inventory"),
        ("evidence/another.json", "inventory"),
        ("attachments/another.parquet", "inventory"),
        ("notes.txt", "inventory"),
        ("attestations/notes.txt", "attestation_form"),
        (".hidden", "container"),
    ):
        (copy / name).write_bytes(b"{}\n")
        assert failed_step(copy, policy) == step, name
        (copy / name).unlink()
    (copy / "link.json").symlink_to("plan.json")
    assert failed_step(copy, policy) == "container"


def test_a_file_of_another_bundle_does_not_pass(demo: Path, copy: Path, tmp_path: Path, policy: Policy) -> None:
    other = make_other_bundle(demo, tmp_path / "other")
    ours = set(files_of(copy))
    swapped = 0
    for name in files_of(other):
        foreign = (other / name).read_bytes()
        if name in ours and (copy / name).read_bytes() == foreign:
            continue
        good = (copy / name).read_bytes() if name in ours else None
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_bytes(foreign)
        step = failed_step(copy, policy)
        if name.startswith("attestations/evidence-"):
            assert step == "record_signatures", f"{name} added: {step}"
        else:
            assert step in {"index", "inventory"}, f"{name} replaced: {step}"
        swapped += 1
        if good is None:
            (copy / name).unlink()
            if not any((copy / name).parent.iterdir()):
                (copy / name).parent.rmdir()
        else:
            (copy / name).write_bytes(good)
    assert swapped > 8


def make_other_bundle(demo: Path, out: Path) -> Path:
    """Return a signed bundle of the same plan and key over the second and third trials only."""
    root = Path(__file__).resolve().parents[2]
    trials = root / "demo" / "trials"
    words = ["import", "vllm-bench", str(trials / "trial-2.json"), str(trials / "trial-3.json")]
    words += ["--plan", str(demo / "plan.json"), "--checkpoint", str(demo / "checkpoint.json")]
    words += ["--runtime-packages", str(root / "demo" / "runtime-packages.txt"), "--requested-input", "128"]
    words += ["--requested-output", "64", "--concurrency", "4", "--warmup-requests", "16", "--ignore-eos"]
    words += ["--utc-offset", "+00:00", "--tool-version", "0.32.0", "--metrics", str(trials / "metrics-after-1.prom")]
    words += [str(trials / "metrics-after-2.prom"), str(trials / "metrics-after-3.prom")]
    out.mkdir()
    assert main([*words, "-o", str(out / "imported")]) == 0
    made = ["bundle", "create", str(out / "bundle"), "--plan", str(demo / "plan.json")]
    made += ["--checkpoint", str(demo / "checkpoint.json"), "--registry", str(root / "demo" / "registry.json")]
    assert main([*made, "--evidence", str(out / "imported")]) == 0
    assert main(["attest", str(out / "bundle"), "--key", str(root / "tests/data/published-test-key.pem")]) == 0
    return out / "bundle"


def repack(demo: Path, tmp_path: Path, bundle: Path) -> Path:
    """Return a bundle packed anew, without the key, around changed files."""
    made = tmp_path / "repacked"
    words = ["bundle", "create", str(made), "--plan", str(bundle / "plan.json")]
    words += ["--checkpoint", str(bundle / "checkpoint.json"), "--registry", str(bundle / "registry.json")]
    assert main([*words, "--evidence", str(bundle)]) == 0
    shutil.copytree(bundle / "attestations", made / "attestations")
    return made


def test_one_changed_gap_fails_at_the_digest_and_repacked_at_the_signature(
    demo: Path, copy: Path, tmp_path: Path, policy: Policy
) -> None:
    from moeplan.digest import digest_bytes
    from moeplan.wire.tables import dump_chunk_gaps, load_chunk_gaps

    record_path = next(path for path in sorted((copy / "evidence").glob("*-trial-1.json")))
    record = json.loads(record_path.read_bytes())
    attachment = next(item for item in record["attachments"] if item["role"] == "chunk_gaps")
    table = load_chunk_gaps((copy / attachment["path"]).read_bytes())
    table.gap_ns[100] -= 1
    changed = dump_chunk_gaps(table)
    (copy / attachment["path"]).write_bytes(changed)
    assert failed_step(copy, policy) == "inventory"

    work = tmp_path / "forged"
    shutil.copytree(copy, work)
    attachment["digest"], attachment["size"] = digest_bytes(changed), len(changed)
    forge_record(work, record_path.name, record)
    assert failed_step(repack(demo, tmp_path, work), policy) == "index"


def forge_record(bundle: Path, name: str, record: dict[str, object]) -> None:
    """Write a changed record and make the run manifest name it and its files."""
    from moeplan.wire.canonical import canonical_line, identity

    old = json.loads((bundle / "evidence" / name).read_bytes())
    (bundle / "evidence" / name).write_bytes(canonical_line(record))
    run_path = next(
        p for p in (bundle / "evidence").glob("*.json") if json.loads(p.read_bytes())["kind"] == "run_manifest"
    )
    run = json.loads(run_path.read_bytes())
    for trial in run["trials"]:
        if trial["record"] == identity(old):
            trial["record"] = identity(record)
            trial["files"] = [item["digest"] for item in record["attachments"]]  # type: ignore[attr-defined]
    run_path.write_bytes(canonical_line(run))


def resign(bundle: Path) -> None:
    """Sign a bundle anew with the trusted key, as a dishonest but trusted packer could."""
    root = Path(__file__).resolve().parents[2]
    shutil.rmtree(bundle / "attestations", ignore_errors=True)
    assert main(["attest", str(bundle), "--key", str(root / "tests/data/published-test-key.pem")]) == 0


def change_plan(bundle: Path, tmp_path: Path, change: object) -> Path:
    """Return a copy of the bundle around a changed plan, every record renamed to it, signed by the trusted key."""
    from moeplan.wire.canonical import canonical_line, identity

    work = tmp_path / "changed"
    shutil.copytree(bundle, work)
    plan = json.loads((work / "plan.json").read_bytes())
    change(plan)  # type: ignore[operator]
    (work / "plan.json").write_bytes(canonical_line(plan))
    records: dict[str, str] = {}
    for path in sorted((work / "evidence").glob("*.json")):
        document = json.loads(path.read_bytes())
        if document["kind"] == "evidence_record":
            before = identity(document)
            document["plan"] = identity(plan)
            records[before] = identity(document)
            path.write_bytes(canonical_line(document))
    for path in sorted((work / "evidence").glob("*.json")):
        document = json.loads(path.read_bytes())
        if document["kind"] == "run_manifest":
            document["plan"] = identity(plan)
            for trial in document["trials"]:
                trial["record"] = records[trial["record"]]
            path.write_bytes(canonical_line(document))
    made = tmp_path / "remade"
    words = ["bundle", "create", str(made), "--plan", str(work / "plan.json")]
    words += ["--checkpoint", str(work / "checkpoint.json"), "--registry", str(work / "registry.json")]
    assert main([*words, "--evidence", str(work)]) == 0
    resign(made)
    return made


def weaken(plan: dict[str, object]) -> None:
    gate = plan["validationGates"][4]  # type: ignore[index]
    gate["criteria"][0]["limit"] *= 10


def bind_less(plan: dict[str, object]) -> None:
    plan["validationGates"][0]["criteria"][2]["minBinding"] = "declared"  # type: ignore[index]


def drop_criterion(plan: dict[str, object]) -> None:
    del plan["validationGates"][0]["criteria"][2]  # type: ignore[index]


@pytest.mark.parametrize("change", [weaken, bind_less, drop_criterion])
def test_a_weakened_plan_is_caught(demo: Path, tmp_path: Path, policy: Policy, change: object) -> None:
    assert failed_step(change_plan(demo / "bundle", tmp_path, change), policy) == "plan"


def test_another_registry_is_caught(demo: Path, tmp_path: Path, policy: Policy) -> None:
    def change(plan: dict[str, object]) -> None:
        plan["registry"]["digest"] = "sha256:" + "0" * 64  # type: ignore[index]

    assert failed_step(change_plan(demo / "bundle", tmp_path, change), policy) == "plan"


def test_an_unexpected_checkpoint_is_never_ready(demo: Path, policy: Policy) -> None:
    import attrs

    assert policy.expects is not None
    other = attrs.evolve(policy, expects=attrs.evolve(policy.expects, checkpoint_roots=("sha256:" + "0" * 64,)))
    done = audit(demo / "bundle", other, "2026-11-30T18:00:00Z", signer_policies=[policy])
    assert done.ok
    assert done.own is not None
    assert done.own.readiness == "inconclusive"
    assert {(reason.code, reason.message) for reason in done.own.reasons} == {
        ("unexpected_subject", "the checkpoint root is not what the policy expects")
    }
    assert [item.outcome for item in done.reproductions] == ["reproduced"]


def test_a_signed_verdict_that_differs_is_a_fault(
    demo: Path, copy: Path, tmp_path: Path, policy: Policy, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    root = Path(__file__).resolve().parents[2]
    verdict = json.loads((demo / "verdict.json").read_bytes())
    verdict["readiness"] = "ready"
    (tmp_path / "ready.json").write_text(json.dumps(verdict))
    key = str(root / "tests/data/published-test-key.pem")
    assert main(["attest", str(copy), "--verdict", str(tmp_path / "ready.json"), "--key", key]) == 0
    capsysbinary.readouterr()
    assert main(["audit", str(copy), "--policy", str(demo / "policy.json"), "--json"]) == 4
    told = json.load(io.BytesIO(capsysbinary.readouterr().out))
    assert told["ok"] is False
    assert told["steps"][-1]["name"] == "signed_verdict"
    assert told["error"]["code"] == "verdict_differs"


def test_a_verdict_signed_over_other_subjects_is_a_fault(demo: Path, copy: Path, policy: Policy) -> None:
    from moeplan.model.verdict import Verdict
    from moeplan.signing.keys import load_private_key
    from moeplan.signing.sigstore_bundle import seal
    from moeplan.signing.statement import VERDICT_PREDICATE, make_statement
    from moeplan.wire.converter import unstructure
    from moeplan.workflows.attest_bundle import place_attestation

    key = load_private_key((Path(__file__).resolve().parents[2] / "tests/data/published-test-key.pem").read_bytes())
    verdict = load_document((demo / "verdict.json").read_bytes(), Verdict)
    for generator in (verdict.generator, "moeplan/9.9.9"):
        spoofed = {**unstructure(verdict), "generator": generator}
        payload = make_statement([("checkpoint", "sha256:" + "0" * 64)], VERDICT_PREDICATE, {"verdict": spoofed})
        placed = place_attestation(copy, "verdict", seal(key, payload))
        done = audit(copy, policy, verdict.at)
        assert done.error is not None
        assert done.error.issues[0].code == "verdict_differs"
        (copy / "attestations" / placed).unlink()


def test_another_releases_verdict_may_differ_in_wording_alone(demo: Path, copy: Path, policy: Policy) -> None:
    import attrs

    from moeplan.attest.statements import verdict_statement
    from moeplan.model.verdict import Verdict
    from moeplan.signing.keys import load_private_key
    from moeplan.signing.sigstore_bundle import seal
    from moeplan.workflows.attest_bundle import place_attestation

    key = load_private_key((Path(__file__).resolve().parents[2] / "tests/data/published-test-key.pem").read_bytes())
    verdict = load_document((demo / "verdict.json").read_bytes(), Verdict)
    first, *others = verdict.gates
    reworded = attrs.evolve(first, criteria=tuple(attrs.evolve(c, method="in other words") for c in first.criteria))
    changed = attrs.evolve(
        first, criteria=tuple(attrs.evolve(c, outcome="pass", underlying="pass") for c in first.criteria)
    )
    for generator, gate, outcome in (
        ("moeplan/9.9.9", reworded, "reproduced_but_wording"),
        ("moeplan/9.9.9", changed, "differs"),
        (verdict.generator, reworded, "differs"),
    ):
        signed = attrs.evolve(verdict, generator=generator, gates=(gate, *others))
        placed = place_attestation(copy, "verdict", seal(key, verdict_statement(signed)))
        done = audit(copy, policy, verdict.at)
        assert outcome in [item.outcome for item in done.reproductions]
        assert done.ok is (outcome != "differs")
        (copy / "attestations" / placed).unlink()


def test_without_the_signers_policy_a_verdict_is_not_checked(demo: Path, policy: Policy) -> None:
    import attrs

    mine = attrs.evolve(policy, test_keys=True, waivers=(), least_binding=())
    done = audit(demo / "bundle.tar", mine, "2026-11-30T18:00:00Z")
    assert [item.outcome for item in done.reproductions] == ["policy_missing"]
    again = audit(demo / "bundle.tar", mine, "2026-11-30T18:00:00Z", signer_policies=[policy])
    assert [item.outcome for item in again.reproductions] == ["reproduced"]
