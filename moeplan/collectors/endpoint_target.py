"""An endpoint that is about to be asked: is it there, what does it serve, and how many tokens does it count."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Sequence
from time import monotonic
from typing import Any

import attrs

from moeplan.collectors.endpoint_address import Address, parse_address
from moeplan.collectors.endpoint_connection import Connections, Deadlines, Exchange
from moeplan.collectors.endpoint_metrics import MetricsPage
from moeplan.collectors.endpoint_requests import APIS, Dialect, get_bytes, post_bytes
from moeplan.errors import InputError, Issue
from moeplan.units import NS_PER_S

__all__ = ["Target", "TargetOptions", "counted_tokens", "open_target", "served_model", "tls_context", "wait_ready"]

_LIMITS = Deadlines(5 * NS_PER_S, 30 * NS_PER_S, 30 * NS_PER_S)
_PAUSE_S = 0.5


@attrs.frozen
class TargetOptions:
    """How an endpoint is reached. Nothing of it is recorded but ``through``.

    Attributes:
        url: of the endpoint.
        model: the name it serves the model under; None asks it.
        api: one of :data:`moeplan.collectors.endpoint_requests.APIS`.
        key: the API key.
        ca_file: certificates that an https endpoint's is checked with; None takes the system's.
        metrics_url: the engine's ``/metrics``, where it is not the endpoint's own.
        through: ``direct``, ``service`` or ``port_forward``.
        ready_within_s: how long to wait for the endpoint; 0 asks once.
    """

    url: str
    model: str | None = None
    api: str = "chat"
    key: str | None = attrs.field(default=None, repr=False)
    ca_file: str | None = None
    metrics_url: str | None = None
    through: str = "direct"
    ready_within_s: int = 0
    ignore_eos: bool = True
    continuous_usage: bool = True


@attrs.frozen
class Target:
    """An endpoint that answers."""

    address: Address
    connections: Connections
    dialect: Dialect
    page: MetricsPage
    key: str | None = attrs.field(repr=False)

    def request(self, prompt: str | Sequence[int], output_tokens: int) -> bytes:
        """Return the bytes of one request."""
        body = self.dialect.body(prompt, output_tokens)
        return post_bytes(self.address, APIS[self.dialect.api], body, self.key)

    def close(self) -> None:
        """Close every connection."""
        self.connections.close()
        self.page.connections.close()


async def open_target(options: TargetOptions) -> Target:
    """Return the endpoint, ready and with the name of its model.

    Raises:
        InputError: the URL is malformed, or nothing that serves a model answers there in time.
        StoreError: the certificates cannot be read.
    """
    address = parse_address(options.url)
    connections = Connections(address, tls_context(address, options.ca_file))
    await wait_ready(address, connections, options)
    model = options.model or await served_model(address, connections, options.key)
    dialect = Dialect(options.api, model, options.ignore_eos, options.continuous_usage)
    page = _page(options, address, model)
    return Target(address, connections, dialect, page, options.key)


def _page(options: TargetOptions, address: Address, model: str) -> MetricsPage:
    where, path = address, "/metrics"
    if options.metrics_url is not None:
        where = parse_address(options.metrics_url, "--metrics-url")
        path = "" if where.path else "/metrics"
    connections = Connections(where, tls_context(where, options.ca_file))
    # The key is the endpoint's: another address is not told it.
    return MetricsPage(connections, where, path, options.key if where.origin == address.origin else None, model)


def tls_context(address: Address, ca_file: str | None) -> ssl.SSLContext | None:
    """Return what an https address is checked with, None for http.

    Raises:
        StoreError: the certificates cannot be read.
    """
    if not address.tls:
        return None
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        from moeplan.wire.files import store_error

        raise store_error(ca_file or "certificates", error, "read") from None


async def wait_ready(address: Address, connections: Connections, options: TargetOptions) -> None:
    """Return once the endpoint lists its models.

    Raises:
        InputError: ``endpoint_not_ready``: it does not in time.
    """
    until = monotonic() + options.ready_within_s
    while True:
        exchange = await connections.exchange(get_bytes(address, "/v1/models", options.key), _LIMITS)
        if exchange.fault is None and exchange.status == 200:
            return
        if monotonic() >= until:
            raise InputError(
                Issue(
                    "--url",
                    "endpoint_not_ready",
                    "the endpoint does not list its models",
                    "HTTP 200 at /v1/models",
                    exchange.fault or f"HTTP {exchange.status}",
                    "check the URL and the key, or wait for it with --ready-within",
                )
            )
        await asyncio.sleep(min(_PAUSE_S, max(until - monotonic(), 0)))


async def served_model(address: Address, connections: Connections, key: str | None) -> str:
    """Return the one model that the endpoint serves.

    Raises:
        InputError: ``model_unclear``: none or several are served.
    """
    exchange = await connections.exchange(get_bytes(address, "/v1/models", key), _LIMITS)
    answer = _answer(exchange)
    listed = answer.get("data") if answer else None
    names = [one.get("id") for one in listed if type(one) is dict] if type(listed) is list else []
    if len(names) == 1 and type(names[0]) is str:
        return names[0]
    step = "name it with --model"
    raise InputError(
        Issue("--model", "model_unclear", "the endpoint serves no or several models", "one", str(len(names)), step)
    )


async def counted_tokens(target: Target, text: str) -> int | None:
    """Return how many tokens the engine's ``/tokenize`` counts in a text, or None where it offers none."""
    body = json.dumps({"model": target.dialect.model, "prompt": text, "add_special_tokens": False}).encode()
    request = post_bytes(target.address, "/tokenize", body, target.key)
    answer = _answer(await target.connections.exchange(request, _LIMITS))
    count = answer.get("count") if answer else None
    return count if type(count) is int else None


def _answer(exchange: Exchange) -> dict[str, Any] | None:
    if exchange.fault is not None or exchange.status != 200:
        return None
    try:
        value = json.loads(b"".join(piece for _, piece in exchange.pieces))
    except (ValueError, RecursionError):
        return None
    return value if type(value) is dict else None
