"""Version ranges and image references."""

from __future__ import annotations

import pytest

from moeplan.errors import InputError
from moeplan.manifests.versions import parse_image, parse_range, parse_version


@pytest.mark.parametrize(
    ("text", "version", "inside"),
    [
        (">=0.11,<0.20", "0.11", True),
        (">=0.11,<0.20", "0.9.2", False),
        (">=0.11,<0.20", "v0.20.0", False),
        (">=0.11,<0.20", "0.19.1.post2", True),
        (">=0.11,<0.20", "0.20rc1", None),
        (">=0.20.2", "0.20.2rc1", None),
        (">=0.20.2", "0.20.3rc1", True),
        (">=0.20.2,<0.20", "0.20.2rc1", False),
        ("==0.27.1", "0.27.1+cu129", True),
        ("!=0.27.1", "0.27.1", False),
        (">0.1,<=0.2", "0.2", True),
        ("", "0.1", True),
        (">=0.11", None, None),
        (">=0.11", "0.1.dev1+g51f799c1a", None),
        (">=0.11", "nightly", None),
    ],
)
def test_contains(text: str, version: str | None, inside: bool | None) -> None:
    assert parse_range(text).contains(parse_version(version)) is inside


@pytest.mark.parametrize("text", ["0.11", "~=0.11", ">=0.11;<2", ">=", ">=0.11,", "==0.*", ">=x"])
def test_other_ranges_are_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_range(text, "$.versions")
    assert (caught.value.issues[0].code, caught.value.issues[0].path) == ("invalid_range", "$.versions")


DIGEST = "sha256:" + "ab" * 32


@pytest.mark.parametrize(
    ("reference", "repository", "tag", "version"),
    [
        ("vllm/vllm-openai:v0.20.2", "vllm/vllm-openai", "v0.20.2", "0.20.2"),
        (f"registry:5000/vllm/vllm-openai:v0.27.1-cu129@{DIGEST}", None, "v0.27.1-cu129", "0.27.1"),
        ("vllm/vllm-openai:v0.28.0rc1", None, "v0.28.0rc1", "0.28.0rc1"),
        ("vllm/vllm-openai:kimi-k3", None, "kimi-k3", None),
        ("vllm/vllm-openai:rocm7_0.9.1", None, "rocm7_0.9.1", None),
        ("vllm/vllm-openai:latest", None, "latest", None),
        (f"vllm/vllm-openai@{DIGEST}", "vllm/vllm-openai", None, None),
        ("own/k3:1.1.0-mi355x-rocm7.2.3", "own/k3", "1.1.0-mi355x-rocm7.2.3", None),
        ("notvllm/vllm-openai:v0.20.2", "notvllm/vllm-openai", "v0.20.2", None),
    ],
)
def test_images(reference: str, repository: str | None, tag: str | None, version: str | None) -> None:
    image = parse_image(reference, ["vllm/vllm-openai"])
    assert repository in (None, image.repository)
    assert (image.tag, None if image.version is None else str(image.version)) == (tag, version)
    assert image.digest == (DIGEST if "@" in reference else None)


@pytest.mark.parametrize("reference", ["", "a b", "a:b:c", "a@sha256:xyz", "a:" + "t" * 129, "x" * 5000])
def test_other_references_are_refused(reference: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_image(reference)
    assert caught.value.issues[0].code == "invalid_image"
