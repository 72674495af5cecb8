"""Messages made up by a seed."""

from __future__ import annotations

from specwire.runtime.rehearsal.drawing import AT_ONCE, ROUNDS
from tests.runtime.rehearsal.staging import stage_of


def test_what_is_prepared_is_what_is_dealt() -> None:
    prepared, not_prepared = stage_of("libfilemq", "C", 3).deck, stage_of("libfilemq", "C", 3).deck
    prepared.prepare({"Nom"})
    assert [prepared.deal("Nom") for _ in range(30)] == [not_prepared.deal("Nom") for _ in range(30)]


def test_messages_are_dealt_again_in_another_order_and_then_others_come() -> None:
    deck = stage_of("libfilemq", "C", 3).deck
    first, second = ([deck.deal("Nom") for _ in range(AT_ONCE)] for _ in range(2))
    assert first != second
    assert sorted(nom.credit for nom in first) == sorted(nom.credit for nom in second)
    for _ in range(AT_ONCE * (ROUNDS - 2)):
        deck.deal("Nom")
    assert {deck.deal("Nom") for _ in range(AT_ONCE)} != set(first)


def test_another_seed_deals_something_else() -> None:
    one, other = stage_of("libfilemq", "C", 3).deck, stage_of("libfilemq", "C", 4).deck
    assert [one.deal("Nom") for _ in range(10)] != [other.deal("Nom") for _ in range(10)]


def test_messages_have_the_header_of_their_sender() -> None:
    """A NORFAB KEEPALIVE has room for that of either side."""
    for role, header in (("B", "NFPB01"), ("W", "NFPW01")):
        deck = stage_of("norfab_ascii", role).deck
        assert {deck.deal("Keepalive").header for _ in range(20)} == {header}
