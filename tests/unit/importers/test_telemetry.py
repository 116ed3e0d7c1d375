"""nvidia-smi, DCGM's exporter, amd-smi and an engine's pages as memory series, against hand-read values and samples."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from moeplan.errors import InputError
from moeplan.importers.amd_smi import amd_readings
from moeplan.importers.dcgm import dcgm_readings
from moeplan.importers.device_rows import DeviceReading
from moeplan.importers.engine_page import EnginePages, kv_cache_tokens
from moeplan.importers.given import GivenFile
from moeplan.importers.nvidia_smi import read_nvidia_smi
from moeplan.importers.scrapes import read_scrapes
from moeplan.importers.telemetry import TelemetryInputs, import_dcgm, import_nvidia_smi, import_vllm_metrics
from moeplan.importers.telemetry_times import local_instant, read_phase
from moeplan.model.deployment import Deployment, RuntimeIdentity
from moeplan.model.observations import MemoryPhase, MemorySeries
from moeplan.model.pseudonyms import pseudonym
from moeplan.model.series import SeriesTable, series_faults
from moeplan.model.series_rows import SeriesRows
from moeplan.wire.closed_table import load_table
from moeplan.wire.observation import MadeObservation, ObservationContext
from moeplan.wire.prometheus_text import parse_exposition
from moeplan.wire.series import SERIES

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "samples"
KEY = b"k" * 32
DIGEST = "sha256:" + "ab" * 32
CONTEXT = ObservationContext(
    DIGEST, Deployment(DIGEST, None, (RuntimeIdentity("serve", "oci_image", DIGEST),), None, None, None, None, None)
)
INPUTS = TelemetryInputs(CONTEXT, "node-a", KEY)
MIB = 1 << 20
T0 = 1_755_624_679 * 10**9
"""2025-08-19T17:31:19Z. Source: date -u -d @1755624679."""
UUIDS = ("GPU-0f1e2d3c-aaaa", "GPU-4b5a6978-bbbb")


def payload(made: MadeObservation) -> MemorySeries:
    assert isinstance(made.record.payload, MemorySeries)
    return made.record.payload


def series(made: MadeObservation) -> SeriesTable:
    path = made.record.attachments[0].path
    assert path is not None
    table = load_table(SERIES, made.files[path])
    assert list(series_faults(table, made.record.duration_ns)) == []
    assert payload(made).row_count == len(table)
    return table


def values(table: SeriesTable, metric: str, subject: str | None = None) -> list[tuple[int, str]]:
    columns = zip(table.subject, table.metric, table.value, table.state, strict=True)
    return [(value, state) for who, what, value, state in columns if what == metric and subject in (None, who)]


def csv(
    *lines: str, header: str | None = "timestamp, uuid, memory.used [MiB], memory.total [MiB], power.draw [W]"
) -> bytes:
    return "\n".join([*([] if header is None else [header]), *lines, ""]).encode()


def line(second: int, gpu: int, used: str, power: str = "312.50 W") -> str:
    return f"2025/08/19 17:31:{second:02d}.250, {UUIDS[gpu]}, {used}, 143771 MiB, {power}"


class TestNvidiaSmi:
    def test_mebibytes_and_watts_become_bytes_and_milliwatts(self) -> None:
        data = csv(line(19, 0, "1024 MiB"), line(19, 1, "2048 MiB"), line(20, 0, "70000 MiB"), line(20, 1, "0 MiB"))
        made, findings = import_nvidia_smi("gpu.csv", data, INPUTS, utc_offset=0)
        table, subject = series(made), pseudonym(KEY, "gpu", UUIDS[0])
        assert values(table, "memory_used_bytes", subject) == [(1024 * MIB, "measured"), (70000 * MIB, "measured")]
        assert values(table, "power_milliwatts", subject) == [(312_500, "measured")] * 2
        assert {device.total_bytes for device in payload(made).devices} == {143_771 * MIB}
        assert made.record.interval.start == "2025-08-19T17:31:19Z"
        assert table.time_ns[0] == 250 * 10**6
        assert payload(made).poll_interval_ns == 10**9
        assert [finding.code for finding in findings] == ["no_phases"]

    def test_no_uuid_enters_a_record(self) -> None:
        made, _ = import_nvidia_smi("gpu.csv", csv(line(19, 0, "1 MiB")), INPUTS, utc_offset=0)
        assert not any(UUIDS[0].encode() in data for data in made.files.values())

    @pytest.mark.parametrize("used", ["1024 MiB", "1024", "1 GiB"])
    def test_a_unit_of_the_value_counts_before_that_of_the_header(self, used: str) -> None:
        rows = list(read_nvidia_smi("gpu.csv", csv(line(19, 0, used))))
        assert rows[0].reading.used_bytes == 1024 * MIB

    def test_without_a_header_the_columns_are_told(self) -> None:
        columns = ["timestamp", "uuid", "memory.used", "memory.total", "power.draw"]
        data = csv(line(19, 0, "1024"), header=None)
        assert [row.reading.used_bytes for row in read_nvidia_smi("gpu.csv", data, columns)] == [1024 * MIB]
        with pytest.raises(InputError, match="no header"):
            list(read_nvidia_smi("gpu.csv", data))

    @pytest.mark.parametrize("text", ["[N/A]", "[Not Supported]", "[Unknown Error]", "N/A"])
    def test_what_the_tool_does_not_know_is_not_zero(self, text: str) -> None:
        made, findings = import_nvidia_smi("gpu.csv", csv(line(19, 0, text, text)), INPUTS, utc_offset=0)
        table = series(made)
        assert values(table, "memory_used_bytes") == [(0, "not_exposed")]
        assert values(table, "power_milliwatts") == [(0, "not_exposed")]
        assert "not_read" in {finding.code for finding in findings}

    def test_reserved_memory_stands_apart(self) -> None:
        header = "timestamp, index, memory.used [MiB], memory.reserved [MiB]"
        made, _ = import_nvidia_smi(
            "g", csv("2025/08/19 17:31:19.000, 0, 100 MiB, 579 MiB", header=header), INPUTS, utc_offset=7200
        )
        assert values(series(made), "memory_reserved_bytes") == [(579 * MIB, "measured")]
        assert made.record.interval.start == "2025-08-19T15:31:19Z"
        assert payload(made).devices[0].id == pseudonym(KEY, "gpu", "node-a/0")

    def test_occupancy_is_not_bandwidth(self) -> None:
        header = "timestamp, index, utilization.memory [%], power.draw [W]"
        with pytest.raises(InputError, match=r"memory\.used"):
            list(read_nvidia_smi("gpu.csv", csv("2025/08/19 17:31:19.000, 0, 12 %, 80 W", header=header)))

    @pytest.mark.parametrize(
        ("text", "code"),
        [
            ("2025/08/19 17:31:19.250, x, 12 MiB, 1 MiB", "columns_differ"),
            (line(19, 0, "12 furlongs"), "unknown_unit"),
            (line(19, 0, "-1 MiB"), "invalid_value"),
            (line(19, 0, "NaN"), "invalid_value"),
        ],
    )
    def test_another_form_is_a_named_error(self, text: str, code: str) -> None:
        with pytest.raises(InputError) as caught:
            import_nvidia_smi("gpu.csv", csv(text), INPUTS, utc_offset=0)
        assert caught.value.issues[0].code == code
        assert caught.value.issues[0].path == "gpu.csv:2"

    @pytest.mark.parametrize("data", [b"", b"\xff\xfe", csv()])
    def test_an_empty_or_foreign_file_is_a_named_error(self, data: bytes) -> None:
        with pytest.raises(InputError):
            import_nvidia_smi("gpu.csv", data, INPUTS, utc_offset=0)

    def test_marked_phases_are_cut_to_what_was_recorded(self) -> None:
        inputs = TelemetryInputs(
            CONTEXT, "node-a", KEY, (read_phase("loaded=2025-08-19T17:31:20Z/2025-08-19T18:00:00Z"),)
        )
        data = csv(*(line(second, 0, "1 MiB") for second in (19, 20, 21)))
        made, _ = import_nvidia_smi("gpu.csv", data, inputs, utc_offset=0)
        assert payload(made).phases == (MemoryPhase("loaded", 10**9, 2_250_000_000),)


class TestDcgm:
    @pytest.mark.shared
    def test_instances_of_a_partitioned_device_are_devices_of_their_own(self) -> None:
        path = SHARED / "public/dcgm/runai-a100-mig-1g5gb.prom"
        if not path.is_file():
            pytest.skip("no samples here")
        scrapes = read_scrapes([GivenFile("mig.prom", path.read_bytes())], [T0])
        made, _ = import_dcgm(scrapes, INPUTS)
        uuid = "GPU-3946bbc8-1f87-7cb2-0481-80aeb4e578a7"
        assert [device.id for device in payload(made).devices] == [pseudonym(KEY, "gpu", f"{uuid}/9")]
        assert values(series(made), "power_milliwatts", pseudonym(KEY, "gpu", uuid)) != []

    @pytest.mark.shared
    def test_two_pages_in_one_file_need_two_instants(self) -> None:
        path = SHARED / "public/dcgm/runai-empty-mig-disabled.prom"
        if not path.is_file():
            pytest.skip("no samples here")
        file = GivenFile("two.prom", path.read_bytes())
        with pytest.raises(InputError, match="2 page"):
            read_scrapes([file], [T0])
        made, _ = import_dcgm(read_scrapes([file], [T0, T0 + 10**9]), INPUTS)
        assert len(values(series(made), "memory_used_bytes")) == 2

    def test_mebibytes_watts_and_millijoules(self) -> None:
        labels = 'gpu="0",UUID="GPU-x-long-enough",Hostname="h"'
        page = "".join(
            f"DCGM_FI_DEV_{name}{{{labels}}} {value}\n"
            for name, value in (
                ("FB_USED", 1000), ("FB_FREE", 80000), ("FB_RESERVED", 500), ("POWER_USAGE", "97.125"),
                ("TOTAL_ENERGY_CONSUMPTION", 123456),
            )
        )  # fmt: skip
        assert dcgm_readings(parse_exposition(page.encode())) == [
            DeviceReading("GPU-x-long-enough", 1000 * MIB, 500 * MIB, 81500 * MIB, 97_125, 123_456)
        ]

    def test_an_energy_counter_that_falls_is_a_reset(self) -> None:
        def page(energy: int) -> bytes:
            fields = (("FB_USED", 1), ("FB_FREE", 1), ("TOTAL_ENERGY_CONSUMPTION", energy))
            rows = (f'DCGM_FI_DEV_{name}{{gpu="0",UUID="GPU-0-0-0-0"}} {value}\n' for name, value in fields)
            return "".join(rows).encode()

        files = [GivenFile(str(n), page(energy)) for n, energy in enumerate((500, 900, 20))]
        made, findings = import_dcgm(read_scrapes(files, [T0 + n * 10**9 for n in range(3)]), INPUTS)
        assert values(series(made), "energy_millijoules") == [(500, "measured"), (900, "measured"), (20, "reset")]
        assert "counter_reset" in {finding.code for finding in findings}

    def test_another_page_is_refused(self) -> None:
        with pytest.raises(InputError, match="DCGM"):
            import_dcgm(read_scrapes([GivenFile("x", b"node_load1_x 0.5\n")], [T0]), INPUTS)


class TestAmdSmi:
    def test_megabytes_are_mebibytes(self) -> None:
        gpu = {
            "gpu": 0,
            "mem_usage": {"total_vram": {"value": 294896, "unit": "MB"}, "used_vram": {"value": 283, "unit": "MB"}},
            "power": {"socket_power": {"value": 238, "unit": "W"}},
        }
        for told in ([gpu], {"gpu_data": [gpu]}):
            reading = amd_readings("amd-smi", json.dumps(told).encode())[0]
            assert (reading.used_bytes, reading.total_bytes, reading.power_mw) == (283 * MIB, 294896 * MIB, 238_000)
        assert 294896 * MIB // 2**30 == 287  # 288 GiB less what is kept back

    def test_not_available_is_not_zero(self) -> None:
        reading = amd_readings("a", b'[{"gpu": 0, "mem_usage": {"used_vram": "N/A", "total_vram": "N/A"}}]')[0]
        assert (reading.used_bytes, reading.asked) == (None, frozenset({"used_bytes"}))

    @pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b"gpu,mem\n0,12"])
    def test_another_form_is_refused(self, data: bytes) -> None:
        with pytest.raises(InputError):
            amd_readings("amd-smi", data)


CONFIG = 'vllm:cache_config_info{{engine="{}",{}}} 1.0\n'
GAUGES = 'vllm:num_requests_running{engine="0"} 2.0\nvllm:num_requests_waiting{engine="0"} 1.0\n'


def pages(*texts: str) -> SeriesTable:
    rows = SeriesRows("vllm-metrics")
    reader = EnginePages(rows, "process-0", "decode")
    for at, text in enumerate(texts):
        reader.read(at, parse_exposition(text.encode()))
    return rows.table()


class TestEnginePages:
    @pytest.mark.parametrize(
        ("labels", "tokens"),
        [
            ('kv_cache_size_tokens="524288",num_gpu_blocks="4096",block_size="128"', 524_288),
            ('num_gpu_blocks="4096",block_size="16"', 65_536),
            ('num_gpu_blocks="None",block_size="16"', None),
            ('kv_cache_size_tokens="1000",num_gpu_blocks="4096",block_size="128"', 1000),
        ],
    )
    def test_capacity_in_tokens_by_version(self, labels: str, tokens: int | None) -> None:
        assert kv_cache_tokens(parse_exposition(CONFIG.format(0, labels).encode())) == tokens

    def test_capacity_of_several_engines_is_their_sum_or_unknown(self) -> None:
        both = CONFIG.format(0, 'kv_cache_size_tokens="10"') + CONFIG.format(1, 'kv_cache_size_tokens="30"')
        assert kv_cache_tokens(parse_exposition(both.encode())) == 40
        one = CONFIG.format(0, 'kv_cache_size_tokens="10"') + CONFIG.format(1, 'block_size="16"')
        assert kv_cache_tokens(parse_exposition(one.encode())) is None

    def test_old_and_new_names_give_one_row(self) -> None:
        old, new = (GAUGES + f'vllm:{name}_cache_usage_perc{{engine="0"}} 0.25\n' for name in ("gpu", "kv"))
        assert values(pages(old, new), "kv_cache_usage") == [(2500, "measured")] * 2
        sglang = "sglang:num_running_reqs 3\nsglang:num_queue_reqs 0\nsglang:token_usage 0.5\n"
        assert values(pages(sglang), "requests_running") == [(3, "measured")]

    def test_a_counter_that_falls_or_an_engine_that_began_anew_is_a_reset(self) -> None:
        def page(tokens: int, start: str) -> str:
            return GAUGES + f"vllm:prompt_tokens_total {tokens}\nprocess_start_time_seconds {start}\n"

        table = pages(page(10, "1e9"), page(4, "1e9"), page(4, "1000000100.5"), page(9, "1000000100.5"))
        assert values(table, "prompt_tokens") == [(10, "measured"), (4, "reset"), (4, "reset"), (9, "measured")]

    def test_the_role_is_said_once(self) -> None:
        table = pages(GAUGES, GAUGES)
        assert [text for text in table.text if text] == ["decode"]

    @pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "1.5", "1e300"])
    def test_what_is_no_count_is_no_row(self, value: str) -> None:
        assert values(pages(GAUGES + f"vllm:prompt_tokens_total {value}\n"), "prompt_tokens") == []


@pytest.mark.shared
class TestRecordedSeries:
    PATH = SHARED / "made/metrics-series-1s-vllm0.32-cpu.full.jsonl.gz"

    def test_both_forms_of_the_series_give_the_same_gauges(self) -> None:
        if not self.PATH.is_file():
            pytest.skip("no samples here")
        full = GivenFile("full.jsonl.gz", self.PATH.read_bytes())
        short = GivenFile("filtered.prom", (SHARED / "made/metrics-series-1s-vllm0.32-cpu.filtered.prom").read_bytes())
        made, _ = import_vllm_metrics(read_scrapes([full]), INPUTS)
        other, _ = import_vllm_metrics(read_scrapes([short]), INPUTS)
        for metric in ("requests_running", "requests_waiting", "prompt_tokens", "generation_tokens", "kv_cache_usage"):
            assert values(series(made), metric) == values(series(other), metric) != []
        assert {state for _value, state in values(series(made), "kv_cache_tokens")} == {"measured"}
        assert {value for value, _state in values(series(made), "kv_cache_tokens")} == {524_288}

    def test_phases_are_those_of_the_running_gauge(self) -> None:
        if not self.PATH.is_file():
            pytest.skip("no samples here")
        scrapes = [json.loads(line) for line in gzip.decompress(self.PATH.read_bytes()).splitlines()]
        busy = []
        for scrape in scrapes:
            gauges = [row for row in scrape["text"].splitlines() if row.startswith("vllm:num_requests_") and "{" in row]
            plain = [row for row in gauges if "_by_reason" not in row]
            busy.append(any(not row.endswith(" 0.0") for row in plain))
        made, _ = import_vllm_metrics(read_scrapes([GivenFile("f", self.PATH.read_bytes())]), INPUTS)
        wanted = 1 + sum(left != right for left, right in pairwise(busy))
        found = payload(made).phases
        assert len(found) == wanted - (busy[-1] != busy[-2])
        assert Counter(phase.name for phase in found)["loaded"] == sum(
            right and not left for left, right in zip([False, *busy], busy, strict=False)
        )
        assert made.record.engine_start == "2026-11-30T16:24:23Z"  # process_start_time_seconds 1.79605586364e+09


class TestScrapesAndTimes:
    @pytest.mark.parametrize(
        "data",
        [b"", b"not metrics at all", b'{"text": "x"}', b'{"scrape_ts_ms": -1, "text": "x"}', b"\x1f\x8bbroken"],
    )
    def test_what_is_no_page_is_a_named_error(self, data: bytes) -> None:
        with pytest.raises(InputError):
            read_scrapes([GivenFile("x", data)], [T0])

    def test_an_instant_is_needed_and_none_too_many(self) -> None:
        page = GivenFile("x", b"a_b 1\n")
        assert read_scrapes([page], [T0])[0].time_ns == T0
        for taken in ([], [T0, T0 + 1]):
            with pytest.raises(InputError):
                read_scrapes([page], taken)
        with pytest.raises(InputError, match="one instant"):
            read_scrapes([page, page], [T0, T0])

    def test_local_time(self) -> None:
        assert local_instant("f", "2025/08/19 17:31:19.5", 0) == T0 + 5 * 10**8
        assert local_instant("f", "2025-08-19 10:31:19", -7 * 3600) == T0
        for text in (None, "17:31:19", "2025/13/01 00:00:00"):
            with pytest.raises(InputError):
                local_instant("f", text, 0)

    @pytest.mark.parametrize("text", ["loaded", "peak=2025-08-19T17:31:20Z/2025-08-19T18:00:00Z", "idle=x/y", "warm=/"])
    def test_a_phase_of_another_form_is_refused(self, text: str) -> None:
        with pytest.raises(InputError):
            read_phase(text)
