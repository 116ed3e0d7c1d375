"""The engine's counters: the text format as its grammar says, recorded scrapes, resets and hostile pages."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from moeplan.errors import InputError
from moeplan.importers.prometheus import CACHED, counters_between, read_snapshot
from moeplan.model.evidence import EngineCounters
from moeplan.wire.prometheus_text import parse_exposition

TRIALS = Path(__file__).resolve().parents[3].parent / "shared" / "samples" / "made" / "trials"


def page(
    requests: int = 5, prompt: str = "100.0", start: str = "1.7960597343e+09", model: str = "m", extra: str = ""
) -> bytes:
    return (
        f"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds {start}\n"
        f'vllm:request_success_total{{engine="0",finished_reason="length",model_name="{model}"}} {requests}\n'
        f'vllm:request_success_total{{engine="0",finished_reason="abort",model_name="{model}"}} 7\n'
        f'vllm:request_success_total{{engine="0",finished_reason="error",model_name="{model}"}} 9\n'
        f'vllm:prompt_tokens_total{{engine="0",model_name="{model}"}} {prompt}\n'
        f'vllm:generation_tokens_total{{engine="0",model_name="{model}"}} 1e+02\n{extra}'
    ).encode()


def refusal(data: bytes, model: str | None = None) -> tuple[str, str]:
    with pytest.raises(InputError) as caught:
        read_snapshot(data, model)
    return caught.value.issues[0].path, caught.value.issues[0].code


def test_labels_escapes_timestamps_and_comments() -> None:
    text = '# HELP a b\n\na{x="1\\"2\\\\3\\n4",y="},{"} 1.5e3 1395066363000\nb\t-Inf\n  c{} +7\r\nd{k="v",} NaN\n#EOF'
    samples = parse_exposition(text.encode())
    assert [(sample.name, sample.value) for sample in samples] == [
        ("a", "1.5e3"),
        ("b", "-Inf"),
        ("c", "+7"),
        ("d", "NaN"),
    ]
    assert samples[0].labels == {"x": '1"2\\3\n4', "y": "},{"}


@pytest.mark.parametrize(
    "line",
    [
        "a",
        "a{x=1} 2",
        'a{x="1} 2',
        'a{x="1" y="2"} 3',
        "a 1 2 3",
        "a b",
        "a1b",
        "7a 1",
        'a{x="1",x="2"} 1',
        'a{"q"} 1',
        "a 0x10",
    ],
)
def test_a_line_that_is_no_sample_is_refused(line: str) -> None:
    assert refusal(page(extra=line + "\n")) == ("line 8", "invalid_metrics")


def test_a_hostile_line_costs_no_more_than_its_length() -> None:
    began = time.monotonic()
    for line in ("a" + " " * 200_000, "a{" + 'x="1",' * 50_000, 'a{x="' + "\\" * 200_001, "a" * 200_000 + "{"):
        assert refusal(line.encode())[1] == "invalid_metrics"
    assert time.monotonic() - began < 5


def test_sums_over_engines_and_reasons_but_not_aborts() -> None:
    second = (
        'vllm:request_success_total{engine="1",finished_reason="stop",model_name="m"} 3\n'
        'vllm:prompt_tokens_total{engine="1",model_name="m"} 11\n'
        'vllm:prefix_cache_hits_total{engine="0",model_name="m"} 4\n'
        'vllm:prefix_cache_hits_total{engine="1",model_name="m"} 5\n'
    )
    snapshot = read_snapshot(page(extra=second))
    assert (snapshot.requests, snapshot.prompt_tokens, snapshot.generation_tokens) == (8, 111, 100)
    assert snapshot.cached_prompt_tokens == 9
    assert snapshot.started == 1796059734


def test_newer_cached_counter_is_preferred_and_none_where_there_is_none() -> None:
    both = 'vllm:prefix_cache_hits_total{engine="0"} 4\nvllm:prompt_tokens_cached_total{engine="0"} 6\n'
    assert read_snapshot(page(extra=both, model=""), None).cached_prompt_tokens == 6
    assert read_snapshot(page()).cached_prompt_tokens is None


def test_one_of_several_models_is_chosen() -> None:
    two = page(requests=5) + b"\n".join(page(requests=50, model="other").split(b"\n")[2:])
    assert read_snapshot(two, "other").requests == 50
    assert refusal(two, "third") == ("model_name", "model_not_found")
    assert read_snapshot(page(), "third").requests == 5


@pytest.mark.parametrize("value", ["1.5", "-1", "NaN", "+Inf", "1e30"])
def test_a_counter_that_is_no_count_is_refused(value: str) -> None:
    assert refusal(page(prompt=value)) == ("line 6", "invalid_counter")


def test_missing_counters_joined_scrapes_and_wrong_encodings_are_refused() -> None:
    assert refusal(b"process_start_time_seconds 1\n") == ("vllm:request_success_total", "metric_missing")
    assert refusal(page() + page())[1] == "duplicate_series"
    assert refusal(b"a\xff 1\n")[1] == "wrong_encoding"
    with pytest.raises(InputError, match="too large"):
        parse_exposition(page(), max_bytes=10)


def test_growth_by_hand() -> None:
    before, after = read_snapshot(page(5, "100")), read_snapshot(page(9, "150"))
    assert counters_between(before, after) == EngineCounters(4, 50, None, 0)


def test_a_restart_is_refused() -> None:
    for after in (page(9, "150", start="1.7960597999e+09"), page(4, "150"), page(9, "99")):
        with pytest.raises(InputError) as caught:
            counters_between(read_snapshot(page(5, "100")), read_snapshot(after))
        assert caught.value.issues[0].code == "counter_reset"


@pytest.mark.shared
@pytest.mark.skipif(not TRIALS.is_dir(), reason="the shared samples do not lie beside the repository")
def test_recorded_scrapes_close_with_the_client_s_sums() -> None:
    names = ("metrics-before.prom", "metrics-after-1.prom", "metrics-after-2.prom", "metrics-after-3.prom")
    pages = [read_snapshot((TRIALS / name).read_bytes(), "tiny-moe") for name in names]
    first = counters_between(pages[0], pages[1])
    sums = {"ttft_ns": 5_660_347_939, "e2e_ns": 67_797_970_057, "preemptions": 0}
    assert first == EngineCounters(240 + 16, 33_896 + 16 * 141, 6656, 15_360 + 1024, **sums)
    second = counters_between(pages[1], pages[2])
    assert (second.ttft_ns, second.e2e_ns) == (5_829_890_013, 128_991_368_294)
    assert counters_between(pages[1], pages[2]).prompt_tokens == 33_897 + 16 * 141
    assert counters_between(pages[2], pages[3]).generation_tokens == 16_384


def summed(ttft: str, count: int, e2e: str | None = None) -> str:
    """Return histograms of two engines: half the requests each, the first with all the seconds."""
    lines = []
    for engine, seconds, of in ((0, ttft, count - count // 2), (1, "0.0", count // 2)):
        labels = f'{{engine="{engine}",model_name="m"}}'
        lines += [f"vllm:time_to_first_token_seconds_sum{labels} {seconds}"]
        lines += [f"vllm:time_to_first_token_seconds_count{labels} {of}"]
        lines += [f'vllm:time_to_first_token_seconds_bucket{labels[:-1]},le="+Inf"}} 999']
    if e2e is not None:
        lines += [f'vllm:e2e_request_latency_seconds_sum{{model_name="m"}} {e2e}']
        lines += [f'vllm:e2e_request_latency_seconds_count{{model_name="m"}} {count}']
    return "\n".join(lines) + "\n"


def grown(before: str, after: str) -> EngineCounters:
    return counters_between(read_snapshot(page(5, extra=before)), read_snapshot(page(9, extra=after)))


def test_sums_of_time_are_nanoseconds_of_the_requests_that_finished_well() -> None:
    told = grown(summed("1.5", 5, "10.25"), summed("2.0000000004", 9, "1.2e1"))
    assert (told.ttft_ns, told.e2e_ns) == (500_000_000, 1_750_000_000)
    assert (told.preemptions, told.draft_tokens, told.accepted_draft_tokens) == (None, None, None)


@pytest.mark.parametrize(
    "after", [summed("2.0", 10), summed("2.0", 8), summed("1.0", 9), summed("NaN", 9), summed("+Inf", 9), ""]
)
def test_sums_over_other_requests_or_of_no_number_tell_nothing(after: str) -> None:
    """A histogram counts aborted requests too: then its sum is not that of the requests that finished."""
    assert grown(summed("1.5", 5), after).ttft_ns is None


def test_preemptions_and_speculation_are_read_where_they_are_exposed() -> None:
    names = ("num_preemptions", "spec_decode_num_draft_tokens", "spec_decode_num_accepted_tokens")
    before = "".join(
        f'vllm:{name}_total{{model_name="m"}} {value}\n' for name, value in zip(names, (1, 10, 5), strict=True)
    )
    after = "".join(
        f'vllm:{name}_total{{model_name="m"}} {value}\n' for name, value in zip(names, (3, 40, 25), strict=True)
    )
    told = grown(before, after)
    assert (told.preemptions, told.draft_tokens, told.accepted_draft_tokens) == (2, 30, 20)
    with pytest.raises(InputError):
        grown(after, before)


def test_counters_of_two_models_are_not_subtracted() -> None:
    before, after = read_snapshot(page(5, "100", model="one")), read_snapshot(page(9, "150", model="two"))
    with pytest.raises(InputError) as caught:
        counters_between(before, after)
    assert caught.value.issues[0].code == "model_differs"


def test_cached_tokens_of_two_names_are_not_subtracted() -> None:
    new, old = CACHED
    first = read_snapshot(page(extra=f'{new}{{model_name="m"}} 4\n{old}{{model_name="m"}} 2\n'))
    second = read_snapshot(page(extra=f'{old}{{model_name="m"}} 5\n'))
    third = read_snapshot(page(extra=f'{old}{{model_name="m"}} 8\n'))
    assert counters_between(first, second).cached_prompt_tokens is None
    assert counters_between(second, third).cached_prompt_tokens == 3
