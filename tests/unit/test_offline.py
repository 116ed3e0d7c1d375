"""The guard of tests/conftest.py itself: no test of this room reaches a network."""

from __future__ import annotations

import socket

import pytest
from pytest_socket import SocketBlockedError


def test_a_unit_test_opens_no_socket() -> None:
    # Raised after a warning of the same words, which this suite turns into an error.
    with pytest.raises((SocketBlockedError, UserWarning), match=r"tried to use socket\.socket"):
        socket.socket(socket.AF_INET, socket.SOCK_STREAM)
