"""Which commands start vLLM, which images are vLLM, and which half of a prefill/decode pair a launch is."""

from __future__ import annotations

from moeplan.facts.fields import parse_field
from moeplan.facts.launches import Program, Subject
from moeplan_vllm.arguments import argument_table

__all__ = ["API_SERVER", "IMAGES", "SERVE", "role_of", "vllm_programs"]

SERVE = "vllm"
"""Name of the program ``vllm serve``, whatever starts it."""
API_SERVER = "vllm.api_server"
"""Name of the server's own module, which knows fewer modes."""
IMAGES = (
    "vllm/vllm-openai",
    "vllm/vllm-openai-rocm",
    "vllm/vllm-openai-cpu",
    "vllm/vllm-openai-xpu",
    "vllm-openai",
    "vllm-openai-rocm",
    "vllm-openai-cpu",
)
"""Image repositories of the vLLM project: their tags are engine versions and their entrypoint is ``vllm serve``.

Source: vLLM documentation, "Using Docker"; ``docker/Dockerfile``.
"""
_ROLES = {"kv_producer": "prefill", "kv_consumer": "decode"}
_KV_ROLE = parse_field("argument --kv-transfer-config kv_role")


def vllm_programs() -> tuple[Program, ...]:
    """Return the programs of vLLM; the first whose words stand in a command is it."""
    table = argument_table()
    serve = Program(
        name=SERVE,
        kind="engine",
        words=(("vllm", "serve"), ("-m", "vllm.entrypoints.cli.main", "serve")),
        table=table,
        entrypoints=IMAGES,
        entry_words=("serve",),
        bare=True,
    )
    module = Program(
        name=API_SERVER,
        kind="engine",
        words=(("-m", "vllm.entrypoints.openai.api_server"), ("api_server.py",)),
        table=table,
    )
    return serve, module


def role_of(launch: Subject) -> str:
    """Return ``prefill`` or ``decode`` as the launch's KV role says, else an empty text."""
    value = launch.look(_KV_ROLE)
    return _ROLES.get(str(value.value), "") if value.is_known else ""
