from __future__ import annotations

import re

import pytest

from moeplan.importers.redaction import redact

SEEDED = (
    (
        "(APIServer pid=1) INFO 11-30 16:16:52 [u.py:286] non-default args: {'api_key': ['k-1234567'], 'x': 'y'}",
        "k-1234567",
    ),
    ("args: Namespace(model='/srv/models/m', api_key='q1w2e3r4')", "q1w2e3r4"),
    ("--api-key q1w2e3r4t5 --port 1", "q1w2e3r4t5"),
    ("Authorization: Bearer abcdef123456", "abcdef123456"),
    ("HF_TOKEN=hf_AbCdEfGhIjKlMnOpQrStUv", "hf_AbCdEfGhIjKlMnOpQrStUv"),
    ("token hf_AbCdEfGhIjKlMnOpQrStUv used", "hf_AbCdEfGhIjKlMnOpQrStUv"),
    ("'hf_token': 'AbCdEfGhIj'", "AbCdEfGhIj"),
    ("key sk-proj-1234567890abcdefgh", "sk-proj-1234567890abcdefgh"),
    ("AWS_SECRET_ACCESS_KEY='wJalrXUtnFEMI'", "wJalrXUtnFEMI"),
    ("password: hunter2222", "hunter2222"),
    ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "eyJzdWIiOiIxIn0"),
    ("saved to /home/ada/.cache/vllm/x", "ada"),
    ("loading ~/models/secret-model", "secret-model"),
    ('File "/opt/teams/ada/x.py", line 3, in f', "ada"),
    ("C:\\Users\\ada\\x", "ada"),
    ("tcp://10.9.8.7:45123 up", "10.9.8.7"),
    ("peer 10.9.8.7:45123", "10.9.8.7"),
    ("peer fe80::1ff:fe23:4567:890a%eth0 up", "890a"),
    ("peer 2001:db8:85a3::8a2e:370:7334", "7334"),
    ("link 52:54:00:12:34:56 up", "12:34:56"),
    ("GPU-1f2e3d4c-1111-2222-3333-444455556666 lost", "1f2e3d4c"),
    ("connected to gpu-node-7.dc2.example.com:8000", "gpu-node-7"),
    ("connected to node-7.rack4.acme-research", "acme"),
    ("connected to gpu7.lab.example:80", "lab"),
    ("svc decode-0.decode.prod.svc.cluster.local", "decode-0"),
    ("on ip-10-1-2-3", "10-1-2-3"),
    ("https://ada:pw@host.example.org/x?token=1", "ada"),
    ("mail ada.b@example.org", "ada"),
    ("user=ada logged in", "ada"),
    ("hostname: 'gpu7'", "gpu7"),
    ("INFO 11-30 16:16:52 [l.py:1] Received request cmpl-1: prompt: 'my diagnosis', params: x", "diagnosis"),
    ("{'prompt': 'my diagnosis'}", "diagnosis"),
    ("config: model='/m', served_model_name=x with config: model='/home/ada'", "ada"),
    ("worker on gpu7 said hello", "gpu7"),
)


@pytest.mark.parametrize(("line", "secret"), SEEDED)
def test_what_is_seeded_does_not_come_out(line: str, secret: str) -> None:
    assert secret in line
    left = redact("before\n" + line + "\nafter", names=("gpu7",))
    assert secret not in left
    assert left.split("\n")[0::2] == ["before", "after"]


@pytest.mark.parametrize(
    "line",
    [
        "(EngineCore_DP0 pid=66) INFO 09-21 12:30:51 [kv_cache_utils.py:864] GPU KV cache size: 1,048,576 tokens",
        "(Worker pid=4) INFO 11-30 16:17:35 [cpu_worker.py:260] Explicitly set (1.0/8.46) GiB for KV cache on node 0.",
        "INFO 11-30 16:16:59 [model.py:733] Resolved architecture: Qwen3MoeForCausalLM",
        "INFO 11-30 16:16:59 [x.py:1] vLLM is using nccl==2.27.7; version 0.32.0+cpu, dtype=torch.bfloat16",
        "  0%|          | 0/5 [00:00<?, ?it/s]",
        "rank 0 in world size 2 is assigned as DP rank 0, PP rank 0, TP rank 0, EP rank N/A",
    ],
)
def test_what_a_record_is_made_of_stays(line: str) -> None:
    if "0/5" in line:
        assert redact(line).startswith("  0%|")
    else:
        assert redact(line) == line


def test_lines_stay_in_their_places() -> None:
    text = "\n".join(line for line, _secret in SEEDED)
    assert len(redact(text).split("\n")) == len(SEEDED)
    assert re.search(r"16:16:52", redact(SEEDED[0][0])) is not None
