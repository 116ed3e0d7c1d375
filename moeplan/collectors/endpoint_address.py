"""The URL of an endpoint, taken apart. It is used to connect, and never recorded."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import attrs

from moeplan.errors import InputError, Issue, escape

__all__ = ["Address", "parse_address"]

_HOST = re.compile(r"[A-Za-z0-9._:-]{1,253}(%[A-Za-z0-9._-]+)?", re.ASCII)
_PATH = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@%/-]*", re.ASCII)
_LOCAL = ("localhost", "127.0.0.1", "::1")


@attrs.frozen
class Address:
    """Where to connect, and the path below which the API lies, without a slash at its end."""

    tls: bool
    host: str
    port: int
    path: str

    @property
    def origin(self) -> str:
        """Scheme, host and port: what a pseudonym is made of."""
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    @property
    def host_header(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

    @property
    def local(self) -> bool:
        """Whether the endpoint lies on this machine, as one behind a port-forward does."""
        return self.host in _LOCAL


def parse_address(url: str, option: str = "--url") -> Address:
    """Return the address in an ``http`` or ``https`` URL; a trailing ``/v1`` is the API's own and is left off.

    Raises:
        InputError: another scheme, no host, a port that is none, or credentials, a query or a fragment in the URL.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _refused(option, "not a URL") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not _HOST.fullmatch(parts.hostname):
        raise _refused(option, "not the URL of an endpoint")
    if parts.username is not None or parts.password is not None:
        step = "name the environment variable that holds the key with --api-key-env"
        raise InputError(Issue(option, "credentials_in_url", "credentials in a URL", "none", None, step))
    if parts.query or parts.fragment or not _PATH.fullmatch(parts.path):
        raise _refused(option, "a query, a fragment or an odd path in the URL")
    tls = parts.scheme == "https"
    path = parts.path.rstrip("/").removesuffix("/v1")
    return Address(tls, parts.hostname, port or (443 if tls else 80), path)


def _refused(option: str, message: str) -> InputError:
    return InputError(Issue(option, "invalid_url", escape(message), "http://HOST:PORT or https://HOST:PORT"))
