"""How weights are stored: bytes of a matrix in each format, exactly, with its scales."""

from __future__ import annotations

from moeplan.units import ceil_div

__all__ = ["FORMATS", "matrix_bytes"]

FORMATS = ("bf16", "fp32", "fp8", "fp8_128", "mxfp4", "nvfp4", "int4_32")
"""``fp8`` has one scale a matrix; ``fp8_128`` a float for each 128 x 128 block; ``mxfp4`` a byte for 32 values of a
row; ``nvfp4`` a byte for 16 values and a float a matrix; ``int4_32`` a 16-bit number for 32 values."""


def matrix_bytes(form: str, rows: int, columns: int) -> int:
    """Return the bytes of a ``rows`` x ``columns`` matrix with its scales, rounded up to whole scales. Exact.

    Source: the formats' ``quantization_config`` (weight_block_size, group_size, scale_dtype) and, for ``nvfp4``,
    ``hf_quant_config`` (group_size 16); OCP Microscaling Formats 1.0 section 5 for ``mxfp4``.

    Raises:
        KeyError: no such format.
    """
    values = rows * columns
    match form:
        case "bf16":
            return 2 * values
        case "fp32":
            return 4 * values
        case "fp8":
            return values + 4
        case "fp8_128":
            return values + 4 * ceil_div(rows, 128) * ceil_div(columns, 128)
        case "mxfp4":
            return rows * (ceil_div(columns, 2) + ceil_div(columns, 32))
        case "nvfp4":
            return rows * (ceil_div(columns, 2) + ceil_div(columns, 16)) + 4
        case "int4_32":
            return rows * (ceil_div(columns, 2) + 2 * ceil_div(columns, 32))
        case _:
            raise KeyError(form)
