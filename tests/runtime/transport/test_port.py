"""A port that is taken is told before anything is done; everything else is left to the one that will listen."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.port import require_free


@pytest.fixture
def taken() -> Iterator[int]:
    """Port of the loopback on which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "*"])
def test_taken_port_is_told(taken: int, host: str) -> None:
    endpoint = f"tcp://{host}:{taken}"
    with pytest.raises(TransportError, match="Address already in use") as error:
        require_free(endpoint)
    assert f"cannot listen on {endpoint}: " in str(error.value)
    assert str(error.value).endswith("choose another port (* takes any that is free)")


def test_port_is_free_after_asking() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    require_free(f"tcp://127.0.0.1:{port}")
    with socket.create_server(("127.0.0.1", port)):
        pass


@pytest.mark.parametrize(
    "endpoint",
    [
        "tcp://127.0.0.1:*",
        "ipc:///somewhere",
        "tcp://no.such.host.invalid:5670",
        "tcp://127.0.0.1:99999",
        "tcp://x",
    ],
)
def test_what_cannot_be_told_is_left_to_the_one_who_listens(endpoint: str) -> None:
    require_free(endpoint)
