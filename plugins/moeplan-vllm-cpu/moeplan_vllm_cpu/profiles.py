"""The one profile: an engine on one CPU host, as the project's own recorded run has it, and what it needs of a site."""

from __future__ import annotations

from moeplan.model.plugin import FactSource, Profile, ProfileAim, SiteNeed

__all__ = ["SINGLE", "profiles"]

SINGLE = "single"
_RUN = FactSource("moeplan evidence/tiny-moe-cpu", "three recorded trials, demo/trials")
_NEEDS = (
    SiteNeed(
        key="hardware",
        title="The host, by its id in the registry that the plan was made with",
        how="moeplan hardware --registry REGISTRY",
        example="cpu-host",
    ),
    SiteNeed(
        key="acceleratorsPerNode",
        title="A host counts as one accelerator",
        how="leave it",
        default="1",
    ),
    SiteNeed(
        key="driver",
        title="Of no use here: a CPU has no driver",
        how="leave it out",
        required=False,
    ),
    SiteNeed(
        key="servedModelName",
        title="The name that clients give in requests",
        how="choose one",
        example="tiny-moe",
    ),
    SiteNeed(
        key="images.engine",
        title="The engine's image by digest, for docker and Kubernetes; without it there is a script alone",
        how="docker buildx imagetools inspect IMAGE:TAG",
        example="vllm-openai-cpu@sha256:" + "0" * 64,
        required=False,
    ),
    SiteNeed(
        key="namespace",
        title="The Kubernetes namespace to deploy to, where there is one",
        how="kubectl get namespaces",
        example="development",
        required=False,
    ),
    SiteNeed(
        key="prices.acceleratorHour",
        title="What the host costs for an hour, in quotes, where anything is paid for it",
        how="who pays for the host",
        example="'0.40'",
        required=False,
    ),
    SiteNeed(
        key="prices.currency",
        title="Its currency, ISO 4217",
        how="the same",
        example="USD",
        required=False,
    ),
)


def profiles() -> tuple[Profile, ...]:
    """Return the profile with what is known of it."""
    return (
        Profile(
            id=SINGLE,
            title="one engine on one CPU host",
            status="measured",
            statement="Three trials of 240 requests were recorded with vLLM 0.32.0 on two cores, serving a Qwen3-MoE "
            "of 4 layers and 16 experts with random weights. Of a real checkpoint that says nothing.",
            sources=(_RUN,),
            site_needs=_NEEDS,
            nodes=1,
            accelerators=1,
            speculation="no",
            aims=(
                ProfileAim(
                    aim="one_node",
                    suits="yes",
                    statement="It runs on any one host; it is for development and tests.",
                    sources=(_RUN,),
                ),
            ),
        ),
    )
