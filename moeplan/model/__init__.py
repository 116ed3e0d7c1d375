"""Frozen value types. No parsing, no I/O."""
