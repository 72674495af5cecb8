"""Endpoints that are slips of the pen, and those that a peer may try."""

from __future__ import annotations

import asyncio

import pytest

from specwire.runtime.transport.endpoint import fault_in_endpoint, resolve_endpoint
from specwire.runtime.transport.errors import TransportError


@pytest.mark.parametrize(
    "endpoint",
    ["tcp://127.0.0.1:5670", "tcp://[::1]:5670", "tcp://[fe80::1%eth0]:1", "tcp://h-1_a.b:65535", "ipc:///a"],
)
def test_endpoints_that_may_be_tried(endpoint: str) -> None:
    assert fault_in_endpoint(endpoint, listening=True) is None
    assert fault_in_endpoint(endpoint, listening=False) is None


@pytest.mark.parametrize(
    ("endpoint", "listening", "words"),
    [
        ("tcp://*:5670", True, "names no host to connect to"),
        ("tcp://127.0.0.1:*", True, "names no port to connect to"),
        ("tcp://127.0.0.1:0", True, "names no port to connect to"),
        ("tcp://eth0:0;host:5", False, "has the host 'eth0:0;host', which is none"),
    ],
)
def test_some_are_only_for_one_side(endpoint: str, listening: bool, words: str) -> None:
    assert fault_in_endpoint(endpoint, listening=listening) is None
    assert fault_in_endpoint(endpoint, listening=not listening) == words


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        ("", "is no endpoint"),
        ("127.0.0.1:5670", "is no endpoint"),
        ("udp://127.0.0.1:5", "is no endpoint"),
        ("tcp://", "is no endpoint"),
        ("ipc://", "is no endpoint"),
        ("tcp://host", "names no port"),
        ("tcp://host:", "names no port"),
        ("tcp://:5670", "names no port"),
        ("tcp://::1", "names no port"),
        ("tcp://host:65536", "has the port 65536, and the highest is 65535"),
        ("tcp://host:-1", "has the port '-1', which is no number"),
        ("tcp://host:٣", "which is no number"),
        ("tcp://a b:5", "has the host 'a b', which is none"),
        ("tcp://💥:5", "which is none"),
        ("tcp://::1:5", "has the host '::1', which is none"),
        ("ipc://" + "ä" * 54, "has a path of 108 octets, and 107 are the most"),
    ],
)
def test_slips_of_the_pen(endpoint: str, words: str) -> None:
    for listening in (True, False):
        fault = fault_in_endpoint(endpoint, listening=listening)
        assert fault is not None and words in fault


@pytest.mark.parametrize("endpoint", ["tcp://127.0.0.1:5670", "tcp://[::1]:5670", "ipc:///tmp/socket"])
def test_addresses_need_no_resolution(endpoint: str) -> None:
    assert asyncio.run(resolve_endpoint(endpoint)) == endpoint


def test_host_names_are_resolved() -> None:
    """The name that every machine has; one that none has is an error that names the endpoint."""
    assert asyncio.run(resolve_endpoint("tcp://localhost:5670")) == "tcp://127.0.0.1:5670"
    with pytest.raises(TransportError, match=r"^tcp://nowhere\.invalid:1: "):
        asyncio.run(resolve_endpoint("tcp://nowhere.invalid:1"))
