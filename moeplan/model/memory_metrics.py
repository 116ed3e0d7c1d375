"""Names of the rows of a ``memory_series``: what the importers and the collector write, and the judges look for."""

from __future__ import annotations

from moeplan.model.observations import MEMORY_PARTS

__all__ = [
    "CACHED_PROMPT_TOKENS",
    "ENERGY",
    "EXTERNAL_HITS",
    "EXTERNAL_QUERIES",
    "HIGH_WATER",
    "KV_CACHE_TOKENS",
    "KV_CACHE_USAGE",
    "PART_METRICS",
    "POWER",
    "PREEMPTIONS",
    "PROMPT_TOKENS",
    "PROMPT_TOKENS_COMPUTED",
    "PROMPT_TOKENS_TRANSFERRED",
    "REQUESTS_RUNNING",
    "REQUESTS_WAITING",
    "RESERVED",
    "ROLE",
    "USED",
]

USED = "memory_used_bytes"
"""Bytes in use on a device; a sample of the device's memory."""
RESERVED = "memory_reserved_bytes"
"""Bytes that driver and firmware keep for themselves and that ``USED`` does not count."""
HIGH_WATER = "memory_high_water_bytes"
"""Most bytes in use so far, as the kernel kept count: what lies between two samples is in it."""
POWER = "power_milliwatts"
ENERGY = "energy_millijoules"
PART_METRICS = {part: f"memory_{part}_bytes" for part in MEMORY_PARTS}
"""The row of each part of memory, as an engine tells it from inside."""
KV_CACHE_TOKENS = "kv_cache_tokens"
"""Tokens that the engine says its KV cache holds; the engine's log has a row of the same name."""
KV_CACHE_USAGE = "kv_cache_usage"
REQUESTS_RUNNING = "requests_running"
REQUESTS_WAITING = "requests_waiting"
ROLE = "role"
"""A word: the role of the deployment that a process serves."""
PROMPT_TOKENS = "prompt_tokens"
PROMPT_TOKENS_COMPUTED = "prompt_tokens_computed"
"""Prompt tokens that this process computed itself, neither cached nor taken from another."""
PROMPT_TOKENS_TRANSFERRED = "prompt_tokens_transferred"
"""Prompt tokens whose KV cache another process handed over."""
CACHED_PROMPT_TOKENS = "cached_prompt_tokens"
EXTERNAL_HITS = "external_prefix_cache_hits"
EXTERNAL_QUERIES = "external_prefix_cache_queries"
PREEMPTIONS = "preemptions"
