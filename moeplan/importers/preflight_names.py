"""The names of hosts in what a preflight's plugin read, as keyed pseudonyms."""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from moeplan.model.preflight import Imported
from moeplan.model.pseudonyms import pseudonym

__all__ = ["with_pseudonyms"]

_ARROW = " -> "
_PART = r"(?<![A-Za-z0-9_-]){}(?![A-Za-z0-9_-])"


def with_pseudonyms(imported: Imported, key: bytes) -> Imported:
    """Return hosts, rows and claims with each host's name, and each peer's, as its pseudonym. Pure.

    Findings are left as they are: they are shown and enter no record.

    Args:
        imported: what the plugin read; an item of the form ``A … -> B …`` names two hosts.
        key: the site's key.
    """
    names = sorted(set(_names(imported)), key=len, reverse=True)
    known = {name: pseudonym(key, "node", name) for name in names}
    pattern = re.compile("|".join(_PART.format(re.escape(name)) for name in names) or r"(?!)")

    def hidden(text: str) -> str:
        return pattern.sub(lambda match: known[match[0]], text)

    return attrs.evolve(
        imported,
        hosts=tuple(attrs.evolve(host, host=known[host.host]) for host in imported.hosts),
        rows=tuple(attrs.evolve(row, host=known[row.host], item=hidden(row.item)) for row in imported.rows),
        claims=tuple(attrs.evolve(claim, name=hidden(claim.name)) for claim in imported.claims),
    )


def _names(imported: Imported) -> Iterator[str]:
    yield from (host.host for host in imported.hosts)
    for row in imported.rows:
        yield row.host
        if _ARROW in row.item:
            yield from (side.split()[0] for side in row.item.split(_ARROW) if side.strip())
