"""What a neighbour has not taken: when clients wait because of it, when they go on, and when it is too much."""

from __future__ import annotations

from specwire.runtime.flux.backlog import HOLD_MESSAGES, HOLD_OCTETS, MAX_MESSAGES, MAX_OCTETS, Backlog

SMALL, LARGE = [b"", b"x" * 20], [b"", b"x" * (1 << 20)]


def test_many_messages_and_many_octets_are_both_too_many() -> None:
    for frames, hold, most in (
        (SMALL, HOLD_MESSAGES, MAX_MESSAGES),
        (LARGE, HOLD_OCTETS >> 20, MAX_OCTETS >> 20),
    ):
        backlog = Backlog(lambda client: None)
        lengths = []
        for _ in range(most):
            lengths.append((backlog.is_long, backlog.is_full))
            backlog.add(frames)
        assert lengths == [(n >= hold, False) for n in range(most)]
        assert backlog.is_full


def test_clients_go_on_once_when_half_has_gone() -> None:
    """Each is told once, however often it was held; one that is held later is told later."""
    resumed: list[str] = []
    backlog = Backlog(resumed.append)
    for _ in range(HOLD_MESSAGES):
        backlog.add(SMALL)
    for client in ("a", "b", "a"):
        backlog.hold(client)
    for _ in range(HOLD_MESSAGES // 2 - 1):
        backlog.take(SMALL)
    assert resumed == []
    backlog.take(SMALL)
    assert resumed == ["a", "b"]
    backlog.hold("c")
    backlog.release()
    assert resumed == ["a", "b", "c"]
    assert (backlog.messages, backlog.octets) == (HOLD_MESSAGES // 2, HOLD_MESSAGES // 2 * 20)
