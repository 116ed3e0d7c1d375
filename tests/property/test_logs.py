"""Reading an engine's log is total: any bytes give a record that is valid, or a named error."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from moeplan.errors import InputError
from moeplan.importers.redaction import redact
from moeplan.importers.vllm_log import LogInputs, import_vllm_log
from moeplan.importers.vllm_log_lines import LogClock
from moeplan.model.series import series_faults
from moeplan.wire.closed_table import load_table
from moeplan.wire.series import SERIES
from tests.unit.importers.test_vllm_log import CONTEXT, GPU_LOG

_LINES = GPU_LOG.split("\n")
_ODD = [
    "Model loading took 999999999.999999999 GiB and 999999999.9 seconds",
    "GPU KV cache size: 99,999,999,999,999 tokens",
    "torch.OutOfMemoryError",
    "0001-01-01T00:00:00+14:00 INFO 99-99 99:99:99 [x:1] Using max model len 1",
    "9998-12-31T23:59:59.9999999999Z x",
    "(\x1b[31m",
    "INFO 02-29 23:59:59 [a.py:1] Application startup complete.",
]
_line = st.one_of(
    st.sampled_from(_LINES),
    st.sampled_from(_ODD),
    st.text(max_size=80),
    st.tuples(st.sampled_from(_LINES), st.integers(0, 60), st.text(max_size=5)).map(
        lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] :]
    ),
)
_logs = st.one_of(
    st.binary(max_size=200), st.lists(_line, max_size=20).map(lambda lines: "\n".join(lines).encode("utf-8", "replace"))
)


@settings(max_examples=300, deadline=None)
@given(_logs, st.sampled_from([None, 1970, 2024, 2026, 9998]), st.sampled_from([-43_200, 0, 50_400]))
def test_any_log_is_a_record_or_a_named_error(data: bytes, year: int | None, offset: int) -> None:
    inputs = LogInputs(CONTEXT, clock=LogClock(year, offset), keep=True)
    try:
        made, _findings = import_vllm_log(data, inputs)
    except InputError:
        return
    path = made.record.attachments[0].path
    assert path is not None
    assert list(series_faults(load_table(SERIES, made.files[path]), made.record.duration_ns)) == []
    again, _findings = import_vllm_log(data, LogInputs(CONTEXT, clock=LogClock(year, offset), keep=True))
    assert again.files == made.files


@settings(max_examples=200, deadline=None)
@given(st.lists(_line, max_size=8), st.text("abcdefgh", min_size=4, max_size=9))
def test_a_hidden_name_never_stays_and_lines_do(lines: list[str], name: str) -> None:
    text = "\n".join(f"{line} {name} {line}" for line in lines)
    left = redact(text, (name,))
    assert left.count("\n") == text.count("\n")
    assert f" {name} " not in left
