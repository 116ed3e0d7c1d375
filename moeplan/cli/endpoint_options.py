"""Options that say which endpoint is asked, and how it is reached. One meaning in every command that has them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moeplan.collectors.endpoint_target import TargetOptions

__all__ = ["add_target", "add_way", "endpoint_name", "require_given", "require_range", "seconds", "target_options"]


def add_target(parser: argparse.ArgumentParser) -> None:
    """Add the endpoint's options."""
    group = parser.add_argument_group("the endpoint; nothing of this is recorded")
    group.add_argument("--url", required=True, metavar="URL", help="of an OpenAI-compatible server")
    group.add_argument("--model", metavar="NAME", help="the name it serves the model under (default: the only one)")
    group.add_argument("--api", choices=("chat", "completions"), default="chat", help="API to call (default chat)")
    group.add_argument("--api-key-env", metavar="VAR", help="environment variable that holds the API key")
    group.add_argument("--ca-file", metavar="FILE", help="certificates to check an https endpoint with")
    group.add_argument("--metrics-url", metavar="URL", help="the engine's /metrics, where it is not the endpoint's own")
    group.add_argument("--ready-within", default="0", metavar="S", help="wait so long for the endpoint (default 0)")


def add_way(parser: argparse.ArgumentParser) -> None:
    """Add what the records say of the endpoint: what lies between, and its name."""
    group = parser.add_argument_group("what the records say of the endpoint")
    group.add_argument(
        "--through",
        choices=("direct", "service", "port-forward"),
        help="what lies between client and engine; through a port-forward no service level is judged (default direct)",
    )
    group.add_argument(
        "--kube-context", metavar="NAME", help="the endpoint is a cluster's: at localhost it is a port-forward"
    )
    named = group.add_mutually_exclusive_group()
    named.add_argument("--endpoint-name", metavar="TEXT", help="what the records call the endpoint")
    named.add_argument(
        "--pseudonym-key",
        metavar="FILE",
        help="key of the endpoint's pseudonym; made where it is missing (default: a key of this run alone)",
    )


def target_options(args: argparse.Namespace) -> TargetOptions:
    """Return how the endpoint is reached.

    Raises:
        InputError: the variable holds no key, or the URL is malformed.
    """
    from moeplan.collectors.endpoint_requests import api_key
    from moeplan.collectors.endpoint_target import TargetOptions

    return TargetOptions(
        url=args.url,
        model=args.model,
        api=args.api,
        key=api_key(args.api_key_env),
        ca_file=args.ca_file,
        metrics_url=args.metrics_url,
        through=_through(args),
        ready_within_s=seconds("--ready-within", args.ready_within) // 10**9,
        ignore_eos=getattr(args, "ignore_eos", False),
        continuous_usage=getattr(args, "continuous_usage", False),
    )


def _through(args: argparse.Namespace) -> str:
    from moeplan.collectors.endpoint_address import parse_address
    from moeplan.errors import InputError, Issue

    if not hasattr(args, "through"):
        return "direct"
    if getattr(args, "load_image", None) is not None:
        return "service" if args.through is None else str(args.through)
    forwarded = args.kube_context is not None and parse_address(args.url).local
    if forwarded and args.through not in (None, "port-forward"):
        message = "a cluster's endpoint at localhost is reached through a port-forward"
        raise InputError(Issue("--through", "usage", message, "port-forward", args.through))
    chosen: str = "port-forward" if forwarded else (args.through or "direct")
    return chosen.replace("-", "_")


def endpoint_name(args: argparse.Namespace) -> str:
    """Return what the records call the endpoint: the given name, or its pseudonym.

    Raises:
        InputError: the URL or the key is malformed, or the name is not printable.
    """
    import secrets

    from moeplan.collectors.endpoint_address import parse_address
    from moeplan.errors import InputError, Issue, escape
    from moeplan.model.pseudonyms import KEY_BYTES, pseudonym

    if args.endpoint_name is not None:
        name: str = args.endpoint_name
        if not name or len(name) > 200 or not name.isprintable():
            got = escape(repr(name), 60)
            raise InputError(Issue("--endpoint-name", "invalid_value", "not a name", "1 to 200 characters", got))
        return name
    if args.pseudonym_key is None:
        key = secrets.token_bytes(KEY_BYTES)
    else:
        from moeplan.wire.pseudonym_key import read_pseudonym_key

        key = read_pseudonym_key(args.pseudonym_key)
    return pseudonym(key, "endpoint", parse_address(args.url).origin)


def seconds(option: str, text: str) -> int:
    """Return an option's seconds in nanoseconds, exactly.

    Raises:
        InputError: not a number of seconds from 0 to a day.
    """
    import re
    from decimal import Decimal

    from moeplan.errors import InputError, Issue, escape

    if not re.fullmatch(r"[0-9]{1,5}(\.[0-9]{1,9})?", text, re.ASCII) or Decimal(text) > 86_400:
        got = escape(repr(text), 40)
        raise InputError(Issue(option, "invalid_value", "not a time", "seconds, from 0 to 86400", got))
    return int(Decimal(text) * 10**9)


def require_given(option: str, value: object, reason: str) -> None:
    """Refuse an option that is missing where another needs it."""
    from moeplan.errors import InputError, Issue

    if value is None:
        raise InputError(Issue(option, "not_stated", reason, "a value"))


def require_range(option: str, value: int, least: int, most: int = 10_000_000) -> None:
    """Refuse a number out of range."""
    from moeplan.errors import InputError, Issue

    if not least <= value <= most:
        expected = f"an integer from {least} to {most}"
        raise InputError(Issue(option, "invalid_value", "value refused", expected, str(value)))
