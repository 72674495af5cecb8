"""How much may wait for a peer, while others wait too."""

from __future__ import annotations

from specwire.runtime.transport.waitingoctets import WaitingOctets


def fill(octets: WaitingOctets, peer: bytes) -> int:
    """Let messages of ten octets wait as long as there is room; return how many."""
    count = 0
    while octets.has_room(peer, [b"four", b"sixsix"]):
        octets.add(peer, [b"four", b"sixsix"])
        count += 1
    return count


def test_each_peer_may_have_half_of_what_the_others_leave() -> None:
    """So all together never have more than the bound, however many they are."""
    octets = WaitingOctets(800)
    assert [fill(octets, peer) for peer in (b"a", b"b", b"c", b"d")] == [40, 20, 10, 5]
    for number in range(100):
        fill(octets, b"%d" % number)
    assert octets.total <= 800


def test_what_is_sent_or_forgotten_makes_room() -> None:
    """To the octet."""
    octets = WaitingOctets(800)
    assert fill(octets, b"a") == 40
    octets.take(b"a", [b"0123456789"])
    assert octets.total == 390 and fill(octets, b"a") == 1
    octets.forget(b"a")
    assert octets.total == 0
    octets.take(b"a", [b"late"])
    octets.forget(b"a")
    assert octets.total == 0 and fill(octets, b"b") == 40


def test_without_a_bound_there_is_always_room() -> None:
    """And nothing is counted."""
    octets = WaitingOctets(None)
    octets.add(b"a", [bytes(10**6)])
    assert octets.has_room(b"a", [bytes(10**6)]) and octets.total == 0
