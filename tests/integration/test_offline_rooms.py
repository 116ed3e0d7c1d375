"""Only the offline rooms are without sockets: a test here may serve and call on the loopback."""

from __future__ import annotations

import socket


def test_an_integration_test_opens_a_socket() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as opened:
        opened.bind(("127.0.0.1", 0))
        assert opened.getsockname()[0] == "127.0.0.1"
