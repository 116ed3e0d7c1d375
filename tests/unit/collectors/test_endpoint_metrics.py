"""What is kept of an engine's page: its counters, and nothing of the site."""

from __future__ import annotations

from pathlib import Path

import pytest

from moeplan.collectors.endpoint_metrics import reduce_page
from moeplan.importers.prometheus import counters_between, read_snapshot
from moeplan.wire.prometheus_text import parse_exposition

TRIALS = Path(__file__).resolve().parents[3] / "demo" / "trials"


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_kept_page_counts_what_the_whole_page_does(number: int) -> None:
    names = ["before" if number == 1 else f"after-{number - 1}", f"after-{number}"]
    whole = [(TRIALS / f"metrics-{name}.prom").read_bytes() for name in names]
    kept = [reduce_page(parse_exposition(page), "tiny") for page in whole]
    assert counters_between(*map(read_snapshot, kept)) == counters_between(*map(read_snapshot, whole))
    assert counters_between(*map(read_snapshot, kept)).requests == 256
    assert [read_snapshot(page).start_text for page in kept] == [read_snapshot(page).start_text for page in whole]


def test_labels_say_nothing_of_the_site_and_series_stay_apart() -> None:
    page = (
        b'vllm:prompt_tokens_total{model_name="/home/me/m",pod="node-a.internal",engine="0"} 3\n'
        b'vllm:prompt_tokens_total{model_name="/home/me/m",pod="node-b.internal",engine="0"} 4\n'
        b'node_uname_info{nodename="secret"} 1\nprocess_start_time_seconds 5\nprocess_start_time_seconds{x="y"} 6\n'
        b'vllm:cache_config_info{model_name="/home/me/m",engine="0"} 1\nvllm:odd{le="/a"} 1\n'
    )
    assert reduce_page(parse_exposition(page), "m").decode().splitlines() == [
        'vllm:prompt_tokens_total{engine="0",model_name="model",pod="v1"} 3',
        'vllm:prompt_tokens_total{engine="0",model_name="model",pod="v2"} 4',
        "process_start_time_seconds 5",
        'vllm:odd{le="v1"} 1',
    ]


def test_of_several_models_the_asked_one_is_kept() -> None:
    page = b'vllm:prompt_tokens_total{model_name="a"} 3\nvllm:prompt_tokens_total{model_name="b"} 4\n'
    assert reduce_page(parse_exposition(page), "b") == b'vllm:prompt_tokens_total{model_name="model"} 4\n'
    assert reduce_page(parse_exposition(page), "c") == b""
