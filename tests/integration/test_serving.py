"""The server's socket (api.md; F60)."""

from __future__ import annotations

import socket

from folkmoot.bootstrap.serving import listening_socket


def test_accepted_connections_hold_no_answer_back() -> None:
    """Otherwise each answer of two writes waits for the client's delayed receipt, 40 ms."""
    with listening_socket("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                assert 0 < accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= 60_000
