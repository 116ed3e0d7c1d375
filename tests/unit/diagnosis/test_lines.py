"""Lines of any length from blocks of any size; escapes taken out; what a JSON line says."""

from __future__ import annotations

import pytest

from moeplan.diagnosis.lines import LINE_BYTES, LineCount, readings, whole_lines, without_colours

LONG = LINE_BYTES


@pytest.mark.parametrize("size", [1, 3, 1000, LINE_BYTES, LINE_BYTES + 1, 1 << 20])
@pytest.mark.parametrize(
    ("data", "wanted", "cut"),
    [
        (b"", [], 0),
        (b"a", [b"a"], 0),
        (b"a\n\nb\n", [b"a", b"", b"b"], 0),
        (b"x" * LONG + b"\ny", [b"x" * LONG, b"y"], 0),
        (b"x" * (LONG + 1) + b"\ny\n", [b"x" * LONG, b"y"], 1),
        (b"a\n" + b"x" * (3 * LONG) + b"\nb\n" + b"z" * (2 * LONG), [b"a", b"x" * LONG, b"b", b"z" * LONG], 2),
    ],
)
def test_lines_are_whole_and_bounded_whatever_the_blocks(data: bytes, wanted: list[bytes], cut: int, size: int) -> None:
    if size < 1000 and len(data) > 10:
        size = 997  # single bytes of long lines take minutes
    count = LineCount()
    blocks = [data[start : start + size] for start in range(0, len(data), size)]
    pieces = list(whole_lines(blocks, count))
    assert all(piece.endswith(b"\n") for piece in pieces)
    assert b"".join(pieces).split(b"\n")[:-1] == wanted
    assert count.cut == cut


def test_a_line_without_end_is_held_in_bounded_memory() -> None:
    block = b"x" * (1 << 20)
    count = LineCount()
    held = list(whole_lines((block for _ in range(300)), count))
    assert [len(piece) for piece in held] == [LINE_BYTES + 1]
    assert count.cut == 1


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (b"\x1b[36m(EngineCore pid=1)\x1b[0;0m fai\x1b[1mled\x1b[0m", b"(EngineCore pid=1) failed"),
        (b"\x1b[2K50%\x1b[1A", b"50%"),
        (b"\x1b]0;title\x07text \x1b]8;;link\x1b\\x", b"text x"),
        (b"\x1b(B\x1b=\x1bMx", b"x"),
        (rb'{"log":"\u001b[36mINFO\u001b[0m x"}', rb'{"log":"INFO x"}'),
        (b"no \\x1b[0m escape, a stray \x1b", b"no \\x1b[0m escape, a stray \x1b"),
        (b"\x1b[31", b"\x1b[31"),
        (b"a\0b", b"a\0b"),
    ],
)
def test_terminal_escapes_are_taken_out(line: bytes, wanted: bytes) -> None:
    assert without_colours(line + b"\n") == wanted + b"\n"


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (b"text\r", (b"text",)),
        (b"\xff\xc3x", ("\ufffd\ufffdx".encode(),)),
        (b'{"log":"say \\"no\\"\\n","n":1}', (b'{"log":"say \\"no\\"\\n","n":1}', b'say "no"')),
        (b'{"msg":"a","err":"b"}\r', (b'{"msg":"a","err":"b"}', b"a", b"b")),
        (b'{"log":"\\ud800"}', (b'{"log":"\\ud800"}', b"?")),
        (b"{'log': 'python'}", (b"{'log': 'python'}",)),
        (b'{"a":' * 20_000 + b"}", (b'{"a":' * 20_000 + b"}",)),
        (b"{" + b"9" * 9000 + b"}", (b"{" + b"9" * 9000 + b"}",)),
        (b'["log"]', (b'["log"]',)),
    ],
)
def test_a_line_is_read_as_it_is_and_as_json(line: bytes, wanted: tuple[bytes, ...]) -> None:
    assert readings(line) == wanted
