"""Which of a server's keys a client expects: the one by which it was heard, or else the next."""

from __future__ import annotations

from specwire.runtime.transport.keys import KeyPair
from specwire.runtime.transport.security import NULL, CurveClient
from specwire.runtime.transport.serverkeys import ServerKeys

KEYS = KeyPair("p", "s")


def test_keys_have_their_turns_until_one_is_right() -> None:
    keys = ServerKeys(CurveClient(KEYS, "a", ("b", "c")))
    seen = []
    for heard in (False, False, False, False, True, True, False, True):
        way = keys.next()
        assert isinstance(way, CurveClient) and way.keys == KEYS and way.other_server_keys == ()
        seen.append(way.server_key)
        if heard:
            keys.heard()
        keys.lost()
    assert "".join(seen) == "abcabbbc"


def test_one_way_is_always_the_same() -> None:
    for security in (NULL, CurveClient(KEYS, "a")):
        keys = ServerKeys(security)
        for _ in range(2):
            assert keys.next() == security
            keys.lost()
