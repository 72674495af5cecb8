"""Where a server shows itself: on loopback, unless somebody says twice that others are meant."""

from __future__ import annotations

import pytest

from specwire.runtime.observe.place import Place, is_loopback, read_place


@pytest.mark.parametrize(
    ("text", "place", "shown"),
    [
        ("9464", Place("127.0.0.1", 9464), "127.0.0.1:9464"),
        ("localhost:80", Place("localhost", 80), "localhost:80"),
        ("127.0.0.2:*", Place("127.0.0.2", 0), "127.0.0.2:0"),
        ("[::1]:9464", Place("::1", 9464), "[::1]:9464"),
    ],
)
def test_a_place_is_a_port_or_a_host_and_a_port(text: str, place: Place, shown: str) -> None:
    read = read_place(text, anywhere=False)
    assert (read, str(read)) == (place, shown)


@pytest.mark.parametrize("text", ["", "x", ":9464", "65536", "-1", "host:x:9464", "٣"])
def test_what_is_no_place_is_told_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="PORT or HOST:PORT is wanted"):
        read_place(text, anywhere=True)


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "192.0.2.7", "node7"])
def test_others_reach_it_only_where_that_was_asked_for(host: str) -> None:
    """The page has no password, so the host alone is not enough."""
    with pytest.raises(ValueError, match="or set metrics-anywhere"):
        read_place(f"{host}:9464", anywhere=False)
    assert not read_place(f"{host}:9464", anywhere=True).is_loopback


def test_brokers_of_an_instance_have_ports_one_after_the_other() -> None:
    assert Place("localhost", 9464).next(3) == Place("localhost", 9467)
    assert Place("localhost", 0).next(3) == Place("localhost", 0)


def test_the_whole_net_127_is_this_machine() -> None:
    assert is_loopback("127.9.9.9") and is_loopback("LOCALHOST") and not is_loopback("128.0.0.1")
