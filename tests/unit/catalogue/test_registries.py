"""The shipped registries against the facts they were made from, and look-up."""

from __future__ import annotations

import hashlib
import json
from importlib import resources
from pathlib import Path
from typing import Any

import attrs
import pytest

from moeplan.catalogue.registries import (
    BUILT_IN,
    find_accelerator,
    find_compatibility,
    find_model,
    load_registry,
    parse_registry,
    registry_digest,
)
from moeplan.errors import InputError, StoreError
from moeplan.model.fields import camel
from moeplan.model.registry import CompatibilityRecord, KnownInteger, KnownText, ModelClaims, Provenance, Registry
from moeplan.wire.documents import dump_document, load_document, require_canonical

FACTS = Path(__file__).resolve().parents[3].parent / "shared" / "facts" / "registry_facts.json"


def shipped(version: str) -> bytes:
    return resources.files("moeplan.catalogue").joinpath("data", f"registry-{version}.json").read_bytes()


@pytest.mark.parametrize("version", BUILT_IN)
def test_shipped_file_passes_schema_and_model_and_is_canonical(version: str) -> None:
    document = load_document(shipped(version), Registry)
    require_canonical(shipped(version), document)
    assert load_registry(version) == document
    assert registry_digest(load_registry(version)) == "sha256:" + hashlib.sha256(shipped(version)).hexdigest()


def test_default_is_the_newest() -> None:
    assert load_registry() is load_registry("1.1.0")
    assert [len(load_registry(version).models) for version in BUILT_IN] == [5, 5]
    assert [len(load_registry(version).hardware) for version in BUILT_IN] == [4, 12]


@pytest.fixture
def facts() -> Any:
    if not FACTS.is_file():
        pytest.skip("the shared facts do not lie beside the repository")
    return json.loads(FACTS.read_bytes())


@pytest.mark.shared
def test_models_hold_the_facts_values_and_addresses(facts: Any) -> None:
    registry = load_registry("1.0.0")
    sources = {source.id: source for source in registry.sources}
    assert len(facts["models"]) == len(registry.models)
    for fact, model in zip(facts["models"], registry.models, strict=True):
        assert (fact["id"], fact["name"], fact["provider"]) == (model.id, model.name, model.provider)
        assert (fact["repository"], fact["revision"], fact["manifestUrl"]) == (
            model.repository,
            model.revision,
            model.manifest_url,
        )
        for field in attrs.fields(ModelClaims):
            claim, wanted = getattr(model.claims, field.name), fact["claims"][camel(field.name)]
            assert isinstance(claim, KnownInteger | KnownText) == wanted["known"]
            assert getattr(claim, "value", None) == wanted["value"]
            told = [
                (sources[p.source].url, sources[p.source].publisher, sources[p.source].retrieved_at, p.locator)
                for p in claim.provenance
            ]
            assert told == [(p["url"], p["publisher"], p["retrievedAt"], p["locator"]) for p in wanted["provenance"]]


@pytest.mark.shared
def test_accelerators_hold_the_facts_memory(facts: Any) -> None:
    registry = load_registry("1.1.0")
    sources = {source.id: source for source in registry.sources}
    wanted = facts["hardware"] + facts["hardware_1_1_0"]
    assert [fact["id"] for fact in wanted] == [item.id for item in registry.hardware]
    for fact, item in zip(wanted, registry.hardware, strict=True):
        assert (fact["name"], fact["vendor"], tuple(fact["aliases"])) == (item.name, item.vendor, item.aliases)
        memory = fact["memoryGigabytes"]
        assert item.memory_bytes == (None if memory is None else memory * 10**9)
        if memory is not None:
            first = sources[item.memory_gigabytes.provenance[0].source]
            assert (first.url, first.retrieved_at) == (fact["url"], None)
            assert len(item.memory_gigabytes.provenance) == (2 if "second_source" in fact else 1)


@pytest.mark.parametrize("name", ["kimi-k3", "KIMI-K3", " Kimi K3 ", "moonshotai/kimi-k3"])
def test_model_by_id_name_and_repository(name: str) -> None:
    assert find_model(load_registry(), name).id == "kimi-k3"


@pytest.mark.parametrize("name", ["h200", "H200-SXM", "nvidia/h200-sxm-141gb", "NVIDIA H200 sxm\n"])
def test_accelerator_by_id_alias_and_name(name: str) -> None:
    assert find_accelerator(load_registry(), name).id == "h200"


def test_near_miss_is_suggested() -> None:
    with pytest.raises(InputError) as caught:
        find_model(load_registry(), "kimi-k2")
    issue = caught.value.issues[0]
    assert (issue.path, issue.code) == ("$.model", "unknown_model")
    assert issue.next == "did you mean 'kimi-k3'?"
    with pytest.raises(InputError) as caught:
        find_accelerator(load_registry("1.0.0"), "mi355x")
    assert caught.value.issues[0].code == "unknown_hardware"


def test_name_far_from_all_points_to_the_list() -> None:
    with pytest.raises(InputError) as caught:
        find_model(load_registry(), "\x1b[31mzzzzzzzz")
    assert caught.value.issues[0].next == "see 'moeplan models'"
    assert "\x1b" not in str(caught.value)


def test_file_in_json_and_yaml(tmp_path: Path) -> None:
    import yaml

    registry = load_registry("1.0.0")
    (tmp_path / "r.json").write_text(json.dumps(json.loads(shipped("1.0.0")), indent=2), "utf-8")
    (tmp_path / "r.yaml").write_text(yaml.safe_dump(json.loads(shipped("1.0.0"))), "utf-8")
    for name in ("r.json", "r.yaml"):
        loaded = load_registry(str(tmp_path / name))
        assert loaded == registry
        assert registry_digest(loaded) == registry_digest(registry)


def test_faults_of_a_file_name_their_paths() -> None:
    value = json.loads(shipped("1.0.0"))
    value["models"][0]["claims"]["license"] = {"status": "guessed"}
    value["hardware"][3]["memoryGigabytes"]["value"] = "48"
    with pytest.raises(InputError) as caught:
        parse_registry(json.dumps(value).encode(), source="mine.json")
    paths = [issue.path for issue in caught.value.issues]
    assert "$.hardware[3].memoryGigabytes.value" in paths
    assert any(path.startswith("$.models[0].claims.license") for path in paths)
    assert caught.value.source == "mine.json"


def test_dangling_source_and_duplicate_name() -> None:
    value = json.loads(shipped("1.0.0"))
    value["models"][1]["aliases"] = ["Kimi K3"]
    value["hardware"][0]["memoryGigabytes"]["provenance"][0]["source"] = "nowhere"
    with pytest.raises(InputError) as caught:
        parse_registry(json.dumps(value).encode())
    assert {(issue.path, issue.code) for issue in caught.value.issues} == {
        ("$.models[1]", "duplicate_name"),
        ("$.hardware[0].memoryGigabytes.provenance[0].source", "unknown_reference"),
    }


def test_unknown_version_and_missing_file() -> None:
    with pytest.raises(InputError) as caught:
        load_registry("9.9.9")
    assert caught.value.issues[0].code == "unknown_registry"
    with pytest.raises(StoreError):
        load_registry("no-such-registry.json")


def test_compatibility_is_found_by_its_three_ids() -> None:
    registry = load_registry("1.0.0")
    place = (Provenance("zai-blog-glm-5.2", None),)
    record = CompatibilityRecord("r1", "glm-5-2", "h200", "vllm", "unsupported", "It does not load.", place)
    mine = attrs.evolve(registry, compatibility=(record,))
    assert find_compatibility(mine, "glm-5-2", "h200", "vllm") is record
    assert find_compatibility(mine, "glm-5-2", "h200", "sglang") is None
    assert find_compatibility(registry, "glm-5-2", "h200", "vllm") is None
    assert registry_digest(mine) == "sha256:" + hashlib.sha256(dump_document(mine)).hexdigest()


def test_many_registries_keep_their_own_digests() -> None:
    base = load_registry("1.0.0")
    made = [attrs.evolve(base, registry_version=f"t{number}") for number in range(40)]
    digests = [registry_digest(registry) for registry in made]
    assert len(set(digests)) == 40
    assert digests == [registry_digest(registry) for registry in made]
