"""Alerts of one conversation, worked out by hand from the dialogs of FILEMQ, Flux and NORFAB."""

from __future__ import annotations

from pathlib import Path

import msgspec

from specwire.generated import flux, norfab
from specwire.generated.messages import Message
from specwire.generated.monitors import Memory
from specwire.runtime.spark.live.conversations import (
    OPEN_KEYS,
    Alert,
    Bundle,
    Conversation,
    Rules,
    WatchedMessage,
    read_bundles,
)
from tests.runtime.spark import captures

RULES = Rules(silent_s=15.0, repeat_s=60.0, forget_s=600.0)
SECOND = 1_000_000
"""Of the tap's clock."""


def notice_all(
    folder: Path, messages: list[captures.Message], protocol: str = "filemq"
) -> tuple[WatchedMessage, ...]:
    captures.write_capture(folder, messages, protocol=protocol)
    (bundle,) = read_bundles(next(folder.iterdir()))
    return bundle.messages


def observe(conversation: Conversation, messages: tuple[WatchedMessage, ...], now_ms: int = 0) -> list[Alert]:
    return list(conversation.observe(messages, now_ms, RULES))


def test_a_message_out_of_place(tmp_path: Path) -> None:
    """The server says yes to what nobody asked for; what would have been in order is stated."""
    said = notice_all(
        tmp_path,
        [("C", captures.OHAI), ("S", captures.OHAI_OK), ("S", captures.ICANHAZ_OK), ("C", captures.NOM)],
    )
    (alert,) = observe(Conversation.begin("filemq"), said)
    assert (alert.kind, alert.sender, alert.seq, alert.message, alert.state) == (
        "violation", "S", 2, "IcanhazOk", "USE"
    )  # fmt: skip
    assert alert.ts == captures.BEGUN + 2000
    assert "C:Icanhaz" in alert.expected and "S:IcanhazOk" not in alert.expected
    assert alert.text.startswith("S:IcanhazOk in state USE: expected ")


def test_what_is_in_order_is_not_told(tmp_path: Path) -> None:
    """From the greeting to the farewell, after which nothing is left to watch."""
    conversation = Conversation.begin("filemq")
    opening = [("C", captures.OHAI), ("S", captures.OHAI_OK), ("C", captures.ICANHAZ)]
    assert observe(conversation, notice_all(tmp_path, [*opening, ("S", captures.ICANHAZ_OK)])) == []
    assert not conversation.over
    farewell = WatchedMessage(4, captures.BEGUN, "C", "Kthxbai")
    assert observe(conversation, (farewell,)) == []
    assert conversation.over


def test_frames_that_are_no_message(tmp_path: Path) -> None:
    """The credit ends after 3 of 8 octets; the other side may then say so."""
    opening = [("C", captures.OHAI), ("S", captures.OHAI_OK)]
    said = notice_all(tmp_path, [*opening, ("C", captures.SHORT_NOM), ("S", captures.SRSLY)])
    conversation = Conversation.begin("filemq")
    (alert,) = observe(conversation, said)
    assert (alert.kind, alert.sender, alert.seq, alert.message) == ("undecodable", "C", 2, None)
    assert alert.text.startswith("NOM.credit at octet 3: expected 8 octets, found 3")
    assert conversation.over


def test_many_findings_are_counted(tmp_path: Path) -> None:
    """One is told, those of the next minute are not, and the next one says how many there were."""
    said = notice_all(tmp_path, [("S", captures.ICANHAZ_OK)] * 5)
    conversation = Conversation.begin("filemq")
    assert [alert.seq for alert in observe(conversation, said[:3], 1000)] == [0]
    assert observe(conversation, said[3:4], 60_999) == []
    (alert,) = observe(conversation, said[4:], 61_000)
    assert (alert.seq, alert.suppressed) == (4, 3)


def test_what_comes_again_is_passed_over(tmp_path: Path) -> None:
    """A segment that was copied twice, or comes late, is no second conversation."""
    said = notice_all(tmp_path, [("C", captures.OHAI), ("S", captures.OHAI_OK), ("C", captures.ICANHAZ)])
    conversation = Conversation.begin("filemq")
    assert observe(conversation, said) == []
    assert observe(conversation, said) == []
    assert conversation.last_seq == 2


def test_memory_goes_through_octets(tmp_path: Path) -> None:
    """Each message seen by a process of its own finds what one process finds."""
    messages = [
        ("C", captures.OHAI),
        ("S", captures.OHAI_OK),
        ("C", captures.ICANHAZ),
        ("S", captures.ICANHAZ_OK),
    ]
    said = notice_all(tmp_path, [*messages, ("S", captures.ICANHAZ_OK)])
    conversation = Conversation.begin("filemq")
    alerts: list[Alert] = []
    for message in said:
        loaded = Conversation.load(conversation.dump())
        assert loaded is not None
        conversation = loaded
        alerts += observe(conversation, (message,))
    assert [alert.seq for alert in alerts] == [4]


def test_what_another_version_remembered_is_forgotten() -> None:
    """Its states, or its fields, may be none of ours."""
    conversation = Conversation.begin("filemq")
    assert Conversation.load(conversation.dump()) == conversation
    conversation.watched = {"peering": Memory("GREETING")}
    assert Conversation.load(conversation.dump()) is None
    assert Conversation.load(msgspec.msgpack.encode({"protocol": "filemq", "sides": 3})) is None


def as_noticed(seq: int, sender: str, message: Message, tmp_path: Path, protocol: str) -> WatchedMessage:
    folder = tmp_path / str(seq)
    (found,) = notice_all(folder, [(sender, message.encode())], protocol)
    return WatchedMessage(seq, found.ts, found.sender, found.name, found.values, found.fault)


def test_answers_are_told_by_their_key(tmp_path: Path) -> None:
    """A response with a matchtag that no request has."""
    request = flux.Request(topic="a.b", nodeid=1, matchtag=7)
    said = [
        as_noticed(0, "C", request, tmp_path, "flux"),
        as_noticed(1, "S", flux.Response(topic="a.b", matchtag=7), tmp_path, "flux"),
        as_noticed(2, "S", flux.Response(topic="a.b", matchtag=8), tmp_path, "flux"),
    ]
    (alert,) = observe(Conversation.begin("flux"), tuple(said))
    assert (alert.kind, alert.seq) == ("violation", 2)


def test_open_requests_are_bounded(tmp_path: Path) -> None:
    """Whatever a client asks without an answer, what is remembered does not grow."""
    conversation = Conversation.begin("flux")
    flags = as_noticed(0, "C", flux.Request(topic="a", nodeid=1, matchtag=1), tmp_path, "flux").values
    asked = (
        WatchedMessage(seq, 0, "C", "Request", flags | {"matchtag": seq + 1}) for seq in range(3 * OPEN_KEYS)
    )
    assert observe(conversation, tuple(asked)) == []
    assert len(conversation.dump()) < 20 * OPEN_KEYS


def test_of_several_dialogs_the_right_one_is_found(tmp_path: Path) -> None:
    """A NORFAB worker's first word is none of a client's, and no violation."""
    conversation = Conversation.begin("norfab")
    assert set(conversation.watched) == {"client", "worker"}
    ready = as_noticed(0, "W", norfab.Ready(service="a"), tmp_path, "norfab")
    assert observe(conversation, (ready,)) == []
    assert set(conversation.watched) == {"worker"}


def test_a_side_that_falls_silent() -> None:
    """Told once, for the side alone that is silent, and again after it was heard in between."""
    conversation = Conversation.begin("filemq")
    hugz = [WatchedMessage(0, 5 * SECOND, "C", "Ohai"), WatchedMessage(1, 6 * SECOND, "S", "OhaiOk")]
    observe(conversation, tuple(hugz), 1_000)
    assert conversation.next_check_ms(RULES) == 16_000
    assert list(conversation.find_silent(15_999, RULES)) == []
    observe(conversation, (WatchedMessage(2, 7 * SECOND, "S", "Hugz"),), 10_000)
    (alert,) = conversation.find_silent(16_000, RULES)
    assert (alert.kind, alert.sender, alert.ts, alert.seq) == ("silent", "C", 5 * SECOND, None)
    assert alert.text == "C sent nothing for 15.0 s; it is silent after 15 s"
    assert list(conversation.find_silent(16_001, RULES)) == []
    assert conversation.next_check_ms(RULES) == 25_000
    observe(conversation, (WatchedMessage(3, 8 * SECOND, "C", "HugzOk"),), 20_000)
    assert [found.sender for found in conversation.find_silent(40_000, RULES)] == ["C", "S"]
    assert conversation.next_check_ms(RULES) == 20_000 + 600_000


def test_silence_is_what_the_protocol_says() -> None:
    """FILEMQ's `expiry`, Flux's `torpid` and NORFAB's `expiry`, where nothing else is asked for."""
    assert Rules().silence_ms("filemq") == 10_000
    assert Rules().silence_ms("flux") == 30_000
    assert Rules().silence_ms("norfab") == 15_000
    assert Rules(silent_s=0.5).silence_ms("flux") == 500


def test_segments_that_cannot_be_read_are_not_noticed(tmp_path: Path) -> None:
    """They are set aside by who reads them for their messages."""
    captures.write_capture(tmp_path / "a", [("C", captures.NOM)])
    whole = next((tmp_path / "a").iterdir())
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(whole.read_bytes()[:-20])
    assert list(read_bundles(cut)) == []
    assert list(read_bundles(tmp_path / "nosuch.parquet")) == []
    captures.write_capture(tmp_path / "b", [("C", captures.NOM)], protocol="gopher")
    foreign = next((tmp_path / "b").iterdir())
    assert list(read_bundles(foreign)) == []
    (found,) = read_bundles(foreign, "filemq")
    assert found == Bundle(
        "filemq", "server-1-0", "c1", "00aa", (WatchedMessage(0, captures.BEGUN, "C", "Nom"),)
    )
