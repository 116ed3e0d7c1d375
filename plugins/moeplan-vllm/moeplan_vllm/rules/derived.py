"""Values that follow from several of a launch's arguments: ``derived NAME`` fields of the facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from moeplan.facts.launches import Derived, Subject, is_directory
from moeplan.facts.values import Value, absent, known, unknown
from moeplan_vllm.families import family_of, name_of, recognises
from moeplan_vllm.rules.backends import BACKENDS
from moeplan_vllm.rules.placing import across_hosts, data_parallel_nodes, is_multi_node, rdma_visible
from moeplan_vllm.rules.reading import connectors, count, flag, is_set, look, transfer

__all__ = ["DERIVED", "PAIRED", "is_paired", "speculates"]

PAIRED = ("NixlConnector", "NixlPushConnector", "MooncakeConnector", "P2pNcclConnector", "MoRIIOConnector")
"""Connectors that hand KV from a prefill engine to a decode engine; the others keep it beside one engine.

Source: vLLM 0.27.1 wheel, distributed/kv_transfer/kv_connector/factory.py
"""
_SPECULATION = (
    "--speculative-config",
    "--spec-method",
    "--spec-model",
    "--speculative-model",
    "--num-speculative-tokens",
)
_SCRIPTS = ("bash", "sh", "*/bash", "*/sh", "*.sh")


def is_paired(subject: Subject) -> bool | None:
    """Return whether the launch is one half of a prefill/decode pair; None where that is not known."""
    names = connectors(subject)
    return None if names is None else any(name in PAIRED for name in names)


def speculates(subject: Subject) -> bool:
    """Return whether speculation is asked for, in whatever words."""
    return any(is_set(subject, f"argument {name}") for name in _SPECULATION)


def _ranks(subject: Subject, *names: str) -> int | None:
    product = 1
    for name in names:
        one = count(subject, name, 1)
        if one is None:
            return None
        product *= one
    return product


def expert_shards(subject: Subject) -> int | None:
    """Return into how many parts a routed expert is cut: TP × DP × PCP, or 1 with expert parallel."""
    whole = flag(subject, "--enable-expert-parallel")
    if whole is None:
        return None
    return 1 if whole else _expert_ranks(subject)


def _expert_ranks(subject: Subject) -> int | None:
    return _ranks(subject, "--tensor-parallel-size", "--data-parallel-size", "--prefill-context-parallel-size")


def engine_gpus(subject: Subject) -> int | None:
    """Return the GPUs of the whole engine on all nodes: TP × PP × PCP × DP."""
    stages = _ranks(subject, "--pipeline-parallel-size")
    ranks = _expert_ranks(subject)
    return None if stages is None or ranks is None else stages * ranks


def _method(subject: Subject) -> Any:
    for field in ("argument --speculative-config method", "argument --spec-method"):
        value = look(subject, field)
        if value.state != "absent":
            return value.value if value.is_known else ...
    return None


def _family(subject: Subject) -> Any:
    return ... if subject.model_name is None else family_of(subject.model_name)


def _told_family(subject: Subject) -> Any:
    """Return the family, not known where a directory is called like no model: any may lie there."""
    name = subject.model_name
    return ... if name is not None and is_directory(name) and not recognises(name) else _family(subject)


def _name(subject: Subject) -> Any:
    return ... if subject.model_name is None else name_of(subject.model_name)


def _connectors(subject: Subject) -> Any:
    names = connectors(subject)
    return ... if names is None else (list(names) or None)


def _allocator(subject: Subject) -> Any:
    """Return what the allocator is told, by its old name or its new one.

    Source: PyTorch documentation, "CUDA environment variables"; PYTORCH_ALLOC_CONF since 2.9.
    """
    texts = []
    for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        value = look(subject, f"environment {name}")
        if value.state == "unknown":
            return ...
        if value.is_known:
            texts.append(str(value.value))
    return ",".join(texts) or None


def _model_flag(key: str, families: tuple[str, ...]) -> Callable[[Subject], Any]:
    def read(subject: Subject) -> Any:
        if subject.model is not None and subject.model.get(key):
            return True
        family = _family(subject)
        if isinstance(family, str) and any(fnmatchcase(family, pattern) for pattern in families):
            return True
        return ... if subject.model is None else False

    return read


def _offload_to_files(subject: Subject) -> Any:
    config = transfer(subject)
    if config is None:
        return ...
    text = str(config)
    return "TieringOffloadingSpec" in text or ("OffloadingConnector" in text and "'fs'" in text)


def _entry_script(subject: Subject) -> Any:
    command, container = subject.command, subject.container
    if container is None or container.command or command is None or command.has_program:
        return False
    first = command.words[0].text if command.words else ""
    return any(fnmatchcase(first, pattern) for pattern in _SCRIPTS)


def _first(subject: Subject) -> Any:
    words = subject.arguments.positional
    return words[0].text if words else None


def _speculation(subject: Subject) -> Any:
    return speculates(subject)


def _in_manifest(subject: Subject) -> Any:
    return subject.container is not None


def _counted(name: str) -> Callable[[Subject], Any]:
    def read(subject: Subject) -> Any:
        return _told(count(subject, name, 0)) if is_set(subject, f"argument {name}") else None

    return read


_MLA = ("kimi-k2", "kimi-k3", "kimi-linear", "deepseek-v3*", "deepseek-r1", "glm-5*")
_HYBRID = ("kimi-k3", "kimi-linear", "qwen3.5", "qwen3.6", "qwen3.8*", "qwen3-next")

_READERS: Mapping[str, tuple[Callable[[Subject], Any], str]] = {
    "allocator": (_allocator, "environment PYTORCH_CUDA_ALLOC_CONF"),
    "across-hosts": (lambda s: _told(across_hosts(s)), "argument --kv-transfer-config"),
    "context-tokens": (_counted("--max-model-len"), "argument --max-model-len"),
    "data-parallel-nodes": (lambda s: _told(data_parallel_nodes(s)), "argument --data-parallel-size"),
    "engine-gpus": (lambda s: _told(engine_gpus(s)), "argument --tensor-parallel-size"),
    "entry-script": (_entry_script, "launch positional"),
    "expert-ranks": (lambda s: _told(_expert_ranks(s)), "argument --tensor-parallel-size"),
    "family": (_family, "launch model"),
    "told-family": (_told_family, "launch model"),
    "first-positional": (_first, "launch positional"),
    "hybrid-attention": (_model_flag("hybridAttention", _HYBRID), "launch model"),
    "in-manifest": (_in_manifest, "launch model"),
    "kv-connectors": (_connectors, "argument --kv-transfer-config"),
    "kv-paired": (lambda s: _told(is_paired(s)), "argument --kv-transfer-config"),
    "latent-attention": (_model_flag("latentAttention", _MLA), "launch model"),
    "model-name": (_name, "launch model"),
    "multi-node": (lambda s: _told(is_multi_node(s)), "argument --nnodes"),
    "offload-to-files": (_offload_to_files, "argument --kv-transfer-config"),
    "rdma-visible": (lambda s: _told(rdma_visible(s)), "argument --kv-transfer-config"),
    "sequences": (_counted("--max-num-seqs"), "argument --max-num-seqs"),
    "speculation": (_speculation, "argument --speculative-config"),
    "speculation-method": (_method, "argument --speculative-config"),
    "step-tokens": (_counted("--max-num-batched-tokens"), "argument --max-num-batched-tokens"),
}


def _told(value: Any) -> Any:
    return ... if value is None else value


def _derived(read: Callable[[Subject], Any], field: str) -> Derived:
    def derived(subject: Subject) -> Value:
        value, place = read(subject), look(subject, field).place
        if value is ...:
            return unknown(place)
        return absent(place) if value is None else known(value, place)

    return derived


DERIVED: Mapping[str, Derived] = {
    **{name: _derived(read, field) for name, (read, field) in _READERS.items()},
    **BACKENDS,
}
"""Name → function of a launch: ``Knowledge.derived`` of every vLLM plugin."""
