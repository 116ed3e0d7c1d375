"""A small plan, site and rendering for the tests of this room."""

from __future__ import annotations

from moeplan.catalogue.registries import load_registry
from moeplan.model.plan import Plan, Scenario
from moeplan.model.plugin import FactSource, Profile
from moeplan.model.rendering import GuideStep, RenderedFile, Rendering
from moeplan.model.site import Site, SiteNode
from moeplan.planning.builder import plan as make_plan
from moeplan.rendering.assembly import RenderedWith

IMAGE = "registry.example/vllm:v1@sha256:" + "ab" * 32
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: serving\n"
POD = f"""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: engine
  namespace: serving
  labels:
    app.kubernetes.io/name: mine
spec:
  template:
    spec:
      containers:
      - name: main
        image: {IMAGE}
        env:
        - name: EMPTY
          value: ''
"""
STEP = GuideStep("deploy", "Apply", "All of it.", ("kubectl apply -k .",), 60)
MADE_WITH = RenderedWith(
    "vllm-test@1.0", "vllm", Profile("one", "one node", "measured", "It ran.", (FactSource("a document"),))
)


def plan() -> Plan:
    """Return a plan."""
    return make_plan(load_registry(), Scenario("kimi-k3", "h200", 8))


def site(**more: object) -> Site:
    """Return a site of one node."""
    nodes = (SiteNode(name="node-a", model_directory="/data/models", accelerators=8),)
    values: dict[str, object] = {"runtime": "vllm-test", "profile": "one", "namespace": "serving", "nodes": nodes}
    return Site(**(values | more))  # type: ignore[arg-type]


def rendering(*files: tuple[str, str, str], guide: tuple[GuideStep, ...] = (STEP,)) -> Rendering:
    """Return a rendering of a namespace and a pod, or of the files given."""
    given = files or (("10-namespace.yaml", "manifest", NAMESPACE), ("20-engine.yaml", "manifest", POD))
    return Rendering(tuple(RenderedFile(*file) for file in given), guide)
