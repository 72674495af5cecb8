"""Broken messages: that they are broken as told, and what is noted of their effect."""

from __future__ import annotations

import random
from importlib import import_module

import pytest

from specwire.generated import filemq, flux, norfab_ascii
from specwire.generated.messages import Message
from specwire.runtime.rehearsal.faults import BREAKERS, break_message
from specwire.runtime.rehearsal.language import Language
from specwire.runtime.rehearsal.manner import Manner
from specwire.runtime.rehearsal.tally import SILENT, Reaction, Tally
from tests.runtime.rehearsal.staging import Desk, open_conversation, stage_of

BROKEN = Manner(messages=60, rate=100.0, patience_s=1.0, fault_share=1.0)

SAMPLES: list[tuple[str, Message]] = [
    ("filemq", filemq.Icanhaz(path="/photos", options=(("RESYNC", "1"),), cache=())),
    ("flux", flux.Request(topic="kvs.get", payload=b"{}\0", matchtag=1)),
    ("norfab_ascii", norfab_ascii.PostClient(service="s", target="all", uuid="u", body=b"{}")),
]


@pytest.mark.parametrize(("protocol", "message"), SAMPLES, ids=[name for name, _ in SAMPLES])
@pytest.mark.parametrize("kind", BREAKERS)
def test_what_is_broken_is_no_message(protocol: str, message: Message, kind: str) -> None:
    language = Language(import_module(f"specwire.generated.{protocol}"))
    found = [break_message(language, random.Random(seed), message.encode(), "C", kind) for seed in range(10)]
    for broken in found:
        if broken is not None:
            assert str(language.fault_in(broken.frames)) == str(broken.error)
    # Only FILEMQ has lengths within a frame.
    assert any(found) is (kind != "absurd length" or protocol == "filemq")


def test_a_length_is_absurd_where_the_length_is() -> None:
    """The path of ICANHAZ has its length in front, in the fourth octet."""
    language = Language(filemq)
    frames = filemq.Icanhaz(path="/photos", options=(), cache=()).encode()
    found = {
        broken.detail: broken.frames
        for seed in range(20)
        if (broken := break_message(language, random.Random(seed), frames, "C", "absurd length"))
    }
    assert found["path is said to have 1 octets of ff"] == [b"\xaa\xa3\x05\xff/photos\x00\x00"]


def first_trial(desk: Desk) -> list[object]:
    """Let our side say its first broken message; return what it says behind it."""
    said = desk.said()
    assert desk.stage.tally.broken == 1
    return said[1:]


def only_reaction(desk: Desk) -> Reaction:
    (reaction,) = desk.stage.tally.reactions
    return reaction


def seed_with(fault: str) -> int:
    """Return a seed whose first broken message in FILEMQ's opening is of this kind."""
    for seed in range(60):
        stage = stage_of("filemq", "C", seed, BROKEN)
        desk = Desk(stage)
        desk.said()
        desk.conversation.lost("the test looks only")
        if only_reaction(desk).fault == fault:
            return seed
    raise AssertionError(f"no seed has {fault}")


def test_an_error_in_answer_is_noted_beside_what_the_profile_says() -> None:
    desk = Desk(stage_of("filemq", "C", seed_with("out of turn"), BROKEN))
    first_trial(desk)
    desk.tell(filemq.Rtfm(reason="unexpected"))
    reaction = only_reaction(desk)
    assert (reaction.fault, reaction.expected, reaction.answer) == ("out of turn", ("Rtfm",), "Rtfm")
    assert reaction.as_expected
    assert desk.stage.tally.findings == []


def test_another_answer_than_the_profiles_is_told() -> None:
    desk = Desk(stage_of("filemq", "C", seed_with("out of turn"), BROKEN))
    first_trial(desk)
    desk.tell(filemq.Wat(reason="what"))
    reaction = only_reaction(desk)
    assert (reaction.answer, reaction.as_expected) == ("Wat", False)
    assert desk.stage.tally.unexpected_reactions == 1


def test_who_answers_the_next_question_went_on() -> None:
    """The other side reads in order: with the answer to OHAI it has read, and passed over, what came before."""
    desk = Desk(stage_of("filemq", "C", seed_with("truncated"), BROKEN))
    assert first_trial(desk) == [filemq.Ohai()]
    desk.tell(filemq.OhaiOk())
    assert only_reaction(desk).answer == "went on"
    assert not desk.conversation.over


def test_hanging_up_is_an_answer() -> None:
    desk = Desk(stage_of("filemq", "C", seed_with("truncated"), BROKEN))
    first_trial(desk)
    desk.conversation.lost("the connection was lost")
    assert only_reaction(desk).answer == "hung up"
    assert desk.stage.tally.losses == {}


def test_who_answers_nothing_any_more_shows_no_sign_of_life() -> None:
    desk = Desk(stage_of("filemq", "C", seed_with("truncated"), BROKEN))
    assert first_trial(desk) == [filemq.Ohai()]
    desk.now += BROKEN.patience_s
    assert desk.said() == []
    assert only_reaction(desk).answer == "no sign of life"
    assert desk.conversation.over


def test_findings_are_bounded_and_what_nobody_expected_is_kept() -> None:
    tally = Tally()
    for number in range(300):
        tally.note_reaction(Reaction(number, "frames", "Nom", "", SILENT, "went on", []))
    tally.note_reaction(Reaction(300, "frames", "Nom", "", ("Wat",), "no sign of life", []))
    assert len(tally.reactions) == 100
    assert tally.reactions[-1].conversation == 300
    assert tally.faults["frames", "went on"] == 300


def test_a_fault_waits_until_nothing_is_under_way() -> None:
    """Else an answer to a request before it could be taken for one to the fault; and it is not forgotten meanwhile."""
    manner = Manner(messages=400, rate=100.0, window=4, patience_s=9.0, fault_share=0.1)
    desk = Desk(stage_of("flux", "C", 1, manner, ["Request.flags=0"]))
    asked: list[flux.Request] = []
    for tick in range(1000):
        if desk.conversation.over:
            desk.conversation = open_conversation(desk.stage, now=tick / 100)
            asked.clear()
        for frames in desk.conversation.act(tick / 100):
            if desk.stage.language.fault_in(frames):
                assert asked == []
                continue
            message = flux.decode(frames)
            if isinstance(message, flux.Request) and message.matchtag != 0:
                asked.append(message)
        desk.now = tick / 100
        if tick % 7 == 0 and asked:
            desk.tell(flux.Response(topic="a", matchtag=asked.pop(0).matchtag))
    assert desk.stage.tally.broken > 10
    assert desk.stage.tally.findings == []
