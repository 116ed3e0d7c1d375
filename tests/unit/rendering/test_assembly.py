"""What the core makes of a rendering, and what it refuses."""

from __future__ import annotations

import hashlib
import json

import pytest
import yaml

from moeplan.errors import InputError, PluginError
from moeplan.model.rendering import GuideStep
from moeplan.rendering.assembly import RenderedSet, assemble
from moeplan.wire.documents import dump_document, load_document
from tests.unit.rendering.made import IMAGE, MADE_WITH, NAMESPACE, POD, plan, rendering, site


def made() -> RenderedSet:
    return assemble(plan(), site(), rendering(), MADE_WITH)


def test_the_set_lists_every_file_by_what_lies_there() -> None:
    got = made()
    told = json.loads(got.files["manifest-set.json"])
    others = {name: data for name, data in got.files.items() if name != "manifest-set.json"}
    assert {one["name"]: (one["digest"], one["size"]) for one in told["files"]} == {
        name: ("sha256:" + hashlib.sha256(data).hexdigest(), len(data)) for name, data in others.items()
    }
    assert told["plan"] == "sha256:" + hashlib.sha256(dump_document(plan())).hexdigest()
    assert told["site"] == "sha256:" + hashlib.sha256(dump_document(site())).hexdigest()
    assert (told["plugin"], told["profile"], told["images"]) == ("vllm-test@1.0", "one", [IMAGE])
    assert load_document(got.files["manifest-set.json"], type(got.manifest_set)) == got.manifest_set


def test_kustomization_has_the_manifests_in_the_order_of_the_plugin() -> None:
    second = rendering(
        ("30-b.yaml", "manifest", NAMESPACE), ("20-a.yaml", "manifest", POD), ("note.txt", "text", "read me")
    )
    got = assemble(plan(), site(), second, MADE_WITH)
    assert yaml.safe_load(got.files["kustomization.yaml"])["resources"] == ["30-b.yaml", "20-a.yaml"]
    assert (
        "kustomization.yaml" not in assemble(plan(), site(), rendering(("run.sh", "script", "echo\n")), MADE_WITH).files
    )


def test_jobs_are_no_part_of_the_kustomization() -> None:
    job = NAMESPACE.replace("v1\nkind: Namespace", "batch/v1\nkind: Job")
    both = (
        "20-both.yaml",
        "manifest",
        NAMESPACE.replace("serving", "engine").replace("Namespace", "Pod") + "---\n" + job,
    )
    files = rendering(("10-job.yaml", "manifest", job.replace("serving", "probe")), both)
    kustomization = assemble(plan(), site(), files, MADE_WITH).files["kustomization.yaml"]
    assert yaml.safe_load(kustomization)["resources"] == ["20-both.yaml"]


def test_labels_are_added_where_they_lack_and_nothing_else_changes() -> None:
    value = yaml.safe_load(made().files["20-engine.yaml"])
    labels = value["metadata"].pop("labels")
    assert labels == {
        "app.kubernetes.io/name": "mine",
        "app.kubernetes.io/instance": "kimi-k3-one",
        "app.kubernetes.io/component": "deployment",
        "app.kubernetes.io/part-of": "moeplan",
        "app.kubernetes.io/managed-by": "moeplan",
        "app.kubernetes.io/version": "9f62e4e9fffbd0a83ddd60e1c209d828994b3569",
    }
    assert value["spec"]["template"].pop("metadata") == {"labels": labels}
    before = yaml.safe_load(POD)
    del before["metadata"]["labels"]
    assert value == before


def test_both_templates_of_a_group_of_pods_are_labelled() -> None:
    pod = {"containers": [{"name": "main", "image": IMAGE}]}
    worker = {"metadata": {"labels": {"app.kubernetes.io/component": "worker"}}, "spec": pod}
    group = {"size": 2, "leaderTemplate": {"spec": pod}, "workerTemplate": worker}
    head = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": "engine"}}
    text = yaml.safe_dump(head | {"spec": {"leaderWorkerTemplate": group}})
    files = assemble(plan(), site(), rendering(("20-engine.yaml", "manifest", text)), MADE_WITH).files
    got = yaml.safe_load(files["20-engine.yaml"])
    labels, made_group = got["metadata"]["labels"], got["spec"]["leaderWorkerTemplate"]
    assert made_group["leaderTemplate"]["metadata"] == {"labels": labels}
    assert made_group["workerTemplate"]["metadata"] == {"labels": {**labels, "app.kubernetes.io/component": "worker"}}
    assert (made_group["size"], made_group["workerTemplate"]["spec"]) == (2, pod)


def test_the_same_inputs_give_the_same_bytes() -> None:
    assert made() == made()
    assert list(made().files) == list(made().files)


def test_the_guide_has_what_the_operator_needs() -> None:
    steps = (
        GuideStep("proof", "Prove it", "Count.", ("grep x",), 90),
        GuideStep("prerequisite", "Download", "To each node.", ("hf download a", "```")),
    )
    text = assemble(plan(), site(), rendering(guide=steps), MADE_WITH).files["README.md"].decode()
    assert "| `node-a` | any | `/data/models` | not known of 8 |" in text
    assert text.index("### 1. Download") < text.index("### 1. Prove it")
    assert "````sh\nhf download a\n```\n````" in text
    assert "Deadline: 1 min 30 s (90 s)." in text
    sentences = [one for gate in plan().validation_gates for one in gate.acceptance_criteria]
    assert len(sentences) > 7
    assert all(f"   - {sentence}\n" in text for sentence in sentences)
    assert "| `20-engine.yaml` | manifest |" in text


def test_the_guide_says_where_to_look_and_how_to_take_it_away() -> None:
    look = NAMESPACE.replace("v1\nkind: Namespace", "batch/v1\nkind: Job").replace("serving", "look")
    three = rendering(
        ("10-space.yaml", "manifest", NAMESPACE), ("20-look.yaml", "manifest", look), ("30-pod.yaml", "manifest", POD)
    )
    text = assemble(plan(), site(), three, MADE_WITH).files["README.md"].decode()
    assert "kubectl delete --ignore-not-found -f 30-pod.yaml -f 20-look.yaml\n" in text
    assert "kubectl -n serving get events" in text
    assert '"$pod" --all-containers --tail=-1 | moeplan diagnose -; done' in text


def refused(kind: type[PluginError] | type[InputError], text: str, form: str = "manifest", name: str = "") -> list[str]:
    name = name or {"manifest": "a.yaml", "script": "a.sh", "text": "a.txt"}[form]
    with pytest.raises(kind) as caught:
        assemble(plan(), site(), rendering((name, form, text)), MADE_WITH)
    return [f"{issue.code} {issue.path}" for issue in caught.value.issues]


@pytest.mark.parametrize(
    "left", ["<NODE>", "<MODEL_DIR>", "{{ .Values.x }}", "${HOME}", "TODO", "CHANGEME", "REPLACE_ME"]
)
def test_no_placeholder_survives(left: str) -> None:
    [told] = refused(PluginError, POD.replace("name: engine", f"name: '{left}'"))
    assert told == "placeholder plugin vllm-test@1.0: a.yaml[0].metadata.name"


@pytest.mark.parametrize("kept", ["$(POD_IP)", "a < b > c", "Todo list", "<lower>", "{a: {b: 1}}"])
def test_what_only_looks_like_a_placeholder_stays(kept: str) -> None:
    text = POD.replace("value: ''", f"value: '{kept}'")
    assert kept.encode() in assemble(plan(), site(), rendering(("a.yaml", "manifest", text)), MADE_WITH).files["a.yaml"]


def test_a_placeholder_of_the_site_is_told_by_the_sites_key() -> None:
    from moeplan.model.site import SiteNode

    at = site(nodes=(SiteNode(name="node-a", model_directory="/mnt/<MODEL_DIR>"),))
    text = POD.replace("name: engine", "name: /mnt/<MODEL_DIR>")
    with pytest.raises(InputError) as caught:
        assemble(plan(), at, rendering(("a.yaml", "manifest", text)), MADE_WITH)
    assert [issue.path for issue in caught.value.issues] == ["$.nodes[0].modelDirectory"]
    assert caught.value.source == "site"


@pytest.mark.parametrize(("name", "kept"), [("$(POD_IP)", False), ("a$$b", False), ("a$b", True), ("(a)", True)])
def test_what_kubernetes_would_rewrite_in_a_command_is_refused(name: str, kept: bool) -> None:
    """Kubernetes replaces $(NAME) in commands and variables and makes $$ one $: the engine would serve another name."""
    at, text = site(served_model_name=name), POD.replace("value: ''", f"value: '/models/{name}'")
    if kept:
        assert assemble(plan(), at, rendering(("a.yaml", "manifest", text)), MADE_WITH)
        return
    with pytest.raises(InputError) as caught:
        assemble(plan(), at, rendering(("a.yaml", "manifest", text)), MADE_WITH)
    assert [(issue.path, issue.code) for issue in caught.value.issues] == [("$.servedModelName", "expanded_value")]
    other = rendering(("a.yaml", "manifest", POD))
    assert assemble(plan(), at, other, MADE_WITH), "it stands in no command"


@pytest.mark.parametrize("empty", ["null", "''", "~"])
def test_empty_values_are_refused(empty: str) -> None:
    [told] = refused(PluginError, POD.replace("name: main", f"name: {empty}"))
    assert told == "empty_value plugin vllm-test@1.0: a.yaml[0].spec.template.spec.containers[0].name"


@pytest.mark.parametrize("image", ["vllm:v1", "vllm", "vllm@sha256:" + "a" * 63, "vllm@sha256:" + "A" * 64])
def test_every_image_is_named_by_digest(image: str) -> None:
    [told] = refused(PluginError, POD.replace(IMAGE, image))
    assert told.startswith("image_without_digest")
    [told] = refused(PluginError, f"docker run --rm -it {image} vllm serve /m\n", "script")
    assert told.startswith("image_without_digest")


def test_a_script_with_its_image_by_digest_is_listed() -> None:
    text = f'docker run --gpus all -e A="${{A}}" {IMAGE} vllm serve /m\n'
    got = assemble(plan(), site(), rendering(("run.sh", "script", text)), MADE_WITH)
    assert got.manifest_set.images == (IMAGE,)


@pytest.mark.parametrize(
    ("text", "form", "name", "code"),
    [
        (NAMESPACE, "manifest", "README.yaml.md", "wrong_ending"),
        (NAMESPACE, "manifest", "Kustomization.yaml", "reserved_name"),
        ("x", "text", "readme.md", "reserved_name"),
        ("{}", "text", "manifest-set.json", "reserved_name"),
        (NAMESPACE + "---\n" + NAMESPACE, "manifest", "a.yaml", "repeated_object"),
        (NAMESPACE.replace("serving", "other"), "manifest", "a.yaml", "other_namespace"),
        (POD.replace("namespace: serving", "namespace: other"), "manifest", "a.yaml", "other_namespace"),
        ("- a\n", "manifest", "a.yaml", "not_an_object"),
        ("kind: Namespace\nmetadata: {name: serving}\n", "manifest", "a.yaml", "not_an_object"),
        ("apiVersion: v1\nkind: A\nmetadata: {name: a, labels: [1]}\n", "manifest", "a.yaml", "not_an_object"),
        ("# nothing\n", "manifest", "a.yaml", "no_object"),
        ("a: [\n", "manifest", "a.yaml", "invalid_yaml"),
        (NAMESPACE + "kind: Other\n", "manifest", "a.yaml", "duplicate_key"),
        ("run <NODE>\n", "script", "a.sh", "placeholder"),
        ("see <PATH>\n", "text", "a.txt", "placeholder"),
    ],
)
def test_each_fault_is_named(text: str, form: str, name: str, code: str) -> None:
    assert code in {told.split()[0] for told in refused(PluginError, text, form, name)}


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (GuideStep("deploy", "t", "s", ("kubectl label node <NODE> a=b",), 5), "placeholder"),
        (GuideStep("smoke", "t", "s", ("curl",)), "no_deadline"),
        (GuideStep("proof", "t", "s", ("grep",)), "no_deadline"),
    ],
)
def test_the_guide_is_looked_at_too(step: GuideStep, code: str) -> None:
    with pytest.raises(PluginError) as caught:
        assemble(plan(), site(), rendering(guide=(step,)), MADE_WITH)
    assert [issue.code for issue in caught.value.issues] == [code]
