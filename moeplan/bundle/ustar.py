"""The one tar form of a bundle: plain ustar headers with nothing in them but path, size and checksum.

GNU tar writes the same headers with ``--format=ustar --numeric-owner --owner=0 --group=0 --mode=0644 --mtime=@0``.
"""

from __future__ import annotations

from moeplan.bundle.container import MAX_FILE_BYTES, fault

__all__ = ["BLOCK", "END", "header", "padding", "parse_header"]

BLOCK = 512
"""Bytes a tar block has. Source: POSIX.1-2017, pax, ustar interchange format (as every layout below)."""
END = bytes(2 * BLOCK)
"""Two blocks of zeros end an archive; nothing may follow."""

_NAME_BYTES = 100
_PREFIX_BYTES = 155
_SIZE = slice(124, 136)
_CHECKSUM = slice(148, 156)


def padding(size: int) -> int:
    """Return how many zero bytes follow a file of ``size`` bytes."""
    return -size % BLOCK


def header(path: str, size: int) -> bytes:
    """Return the 512 header bytes of a regular file: mode 0644, owner, group and time 0, no names.

    Raises:
        VerificationError: ``container_path_too_long``: the path fits no ustar header, ``container_too_large``.
    """
    if not 0 <= size <= MAX_FILE_BYTES:
        raise fault(path, "container_too_large", "file too large for a tar header", f"at most {MAX_FILE_BYTES} bytes")
    prefix, name = _split(path)
    fields = (
        name.ljust(_NAME_BYTES, b"\0"),
        b"0000644\0" + b"0000000\0" * 2,
        b"%011o\0" % size,
        b"00000000000\0",
        b" " * 8,
        b"0" + bytes(100),
        b"ustar\x0000" + bytes(64),
        b"0000000\0" * 2,
        prefix.ljust(_PREFIX_BYTES, b"\0"),
    )
    made = bytearray(b"".join(fields).ljust(BLOCK, b"\0"))
    made[_CHECKSUM] = b"%06o\0 " % sum(made)
    return bytes(made)


def _split(path: str) -> tuple[bytes, bytes]:
    """Return prefix and name; where the name alone is too long, the shortest prefix that leaves one that fits."""
    whole = path.encode("ascii")
    if len(whole) <= _NAME_BYTES:
        return b"", whole
    at = whole.find(b"/", len(whole) - _NAME_BYTES - 1)
    if 0 < at <= _PREFIX_BYTES:
        return whole[:at], whole[at + 1 :]
    raise fault(
        path, "container_path_too_long", "path fits no tar header", "at most 100 characters after a / within 155"
    )


def parse_header(block: bytes, at: int) -> tuple[str, int]:
    """Return path and size of the header ``block`` that lies at byte ``at``, or refuse it.

    The header is made again from the two and compared byte for byte, so that links, devices, directories, pax and GNU
    extensions, owners, times and every second spelling of the same path fall here.

    Raises:
        VerificationError: ``container_header``.
    """
    where = f"tar header at byte {at}"
    try:
        name = block[:_NAME_BYTES].rstrip(b"\0").decode("ascii")
        prefix = block[345:500].rstrip(b"\0").decode("ascii")
        path, size = f"{prefix}/{name}" if prefix else name, int(block[_SIZE][:11], 8)
        again = header(path, size) if size >= 0 else b""
    except ValueError:
        raise fault(
            where, "container_header", "not the header of a bundle's tar form", "a plain ustar file header"
        ) from None
    if again != block:
        place = next((i for i, (a, b) in enumerate(zip(again, block, strict=False)) if a != b), len(block))
        wanted = "a regular file with mode 0644 and no owner, time or extension"
        raise fault(where, "container_header", f"differs from the one form at its byte {place}", wanted, path)
    return path, size
