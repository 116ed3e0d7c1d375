"""The words of ``docker run`` that mount a directory, and what they are read back as."""

from __future__ import annotations

import shlex

import pytest

from moeplan.manifests.commands import commands_of_script
from moeplan.manifests.docker_run import bind_mount, read_docker_run


@pytest.mark.parametrize(
    ("directory", "words"),
    [
        ("/data/models", ["--volume", "/data/models:/models:ro"]),
        ("/data/a,b c", ["--volume", "/data/a,b c:/models:ro"]),
        ("/data/a:b", ["--mount", "type=bind,source=/data/a:b,target=/models,readonly"]),
        ('/d/a:b,"c"', ["--mount", 'type=bind,"source=/d/a:b,""c""",target=/models,readonly']),
    ],
)
def test_a_directory_is_mounted_and_read_back(directory: str, words: list[str]) -> None:
    """``--volume`` takes at most three parts; ``--mount`` is a row of CSV (RFC 4180)."""
    assert bind_mount(directory, "/models") == words
    [command] = commands_of_script(shlex.join(["docker", "run", *words, "vllm/vllm-openai:v0.27.1", "--model", "m"]))
    run = read_docker_run(command)
    assert run is not None
    [volume], [mount] = run.template.volumes, run.container.mounts
    assert (volume.source, mount.mount_path, mount.read_only) == ({"path": directory}, "/models", True)
