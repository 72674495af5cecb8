"""The three ways in which peers write, through `wire`: recorded messages, and every command both ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from specwire.generated.errors import DecodeError, EncodeError
from specwire.runtime.norfab import commands
from specwire.runtime.norfab.commands import Command, Role
from specwire.runtime.norfab.wire import Dialect, Dialects, decode, encode, read
from tests.generated.refused import REFUSED
from tests.generated.vectors import entries, frames_of

VECTORS = {entry["name"]: entry for entry in entries("norfab-0.25-0.6.json")}
ONE_OCTET = "v0.25.0/raw_onebyte_command_per_spec/441/?"
UNREADABLE = sorted(set(REFUSED["norfab_ascii"]) - {ONE_OCTET})
READABLE = sorted(set(VECTORS) - set(UNREADABLE))


def frames(name: str) -> list[bytes]:
    return list(frames_of(VECTORS[name]))


@pytest.mark.parametrize("name", READABLE)
def test_a_recorded_message_says_what_the_recorder_states(name: str) -> None:
    entry, stated = VECTORS[name], VECTORS[name]["fields"]
    received = decode(frames(name))
    assert received.sender == entry["direction"].split("->")[0]
    kind = type(received.command).__name__.upper().replace("MMIREPLY", "MMI")
    assert name == ONE_OCTET or kind == stated["command_name"]
    if isinstance(received.command, commands.Open):
        assert received.command.body == frames(name)[3]
        return
    for field in ("service", "target", "uuid"):
        if field in stated:
            assert getattr(received.command, field) == stated[field]
    if "status" in stated:
        assert getattr(received.command, "status") == int(stated["status"][:3])  # noqa: B009
    if "client_address" in stated:
        assert getattr(received.command, "client") == stated["client_address"].encode()  # noqa: B009


@pytest.mark.parametrize("name", READABLE)
def test_who_does_not_ask_how_a_message_is_written_reads_the_same(name: str) -> None:
    assert read(frames(name)) == decode(frames(name)).command


@pytest.mark.parametrize("reader", [decode, read])
@pytest.mark.parametrize("name", UNREADABLE)
def test_a_recorded_fault_is_a_decode_error(name: str, reader: Callable[[list[bytes]], object]) -> None:
    with pytest.raises(DecodeError):
        reader(frames(name))


@pytest.mark.parametrize("name", [name for name in READABLE if name != ONE_OCTET])
def test_a_recorded_message_is_written_again_as_it_was(name: str) -> None:
    received = decode(frames(name))
    receiver = VECTORS[name]["direction"].split("->")[1]
    dialect = Dialect.DEPLOYED_06 if "/v0.6" in f"/{name}" else Dialect.DEPLOYED
    assert encode(received.command, dialect, received.sender, receiver) == frames(name)


def test_the_one_octet_form_is_the_specification_s() -> None:
    received = decode(frames(ONE_OCTET))
    assert (received.dialect, received.sender) == (Dialect.NORFAB, "client")
    assert isinstance(received.command, commands.Post)


@pytest.mark.parametrize(
    "name", [n for n in READABLE if n.startswith("v0.6") and VECTORS[n]["direction"].startswith("client->")]
)
def test_version_0_6_is_known_by_its_json(name: str) -> None:
    assert decode(frames(name)).dialect is Dialect.DEPLOYED_06


@pytest.mark.parametrize(
    "name",
    [name for name in READABLE if name.startswith("v0.25") and "->broker" in VECTORS[name]["direction"]],
)
def test_version_0_25_is_never_taken_for_0_6(name: str) -> None:
    expected = Dialect.NORFAB if name == ONE_OCTET else Dialect.DEPLOYED
    assert decode(frames(name)).dialect is expected


FORMS: list[tuple[Role, Role, Command]] = [
    ("client", "broker", commands.Open(b"{}")),
    ("worker", "broker", commands.Open(b"")),
    ("broker", "client", commands.Open(b"")),
    ("worker", "broker", commands.Ready("svc")),
    ("worker", "broker", commands.Keepalive("svc")),
    ("broker", "worker", commands.Keepalive("svc")),
    ("worker", "broker", commands.Disconnect("svc")),
    ("broker", "worker", commands.Disconnect("svc")),
    ("client", "broker", commands.Mmi("u", b"{}", "mmi.service.broker", "all")),
    ("broker", "client", commands.MmiReply("u", 200, b"{}", "mmi.service.broker")),
    *(
        ("client", "broker", kind("u", b"{}", "svc", "any"))
        for kind in (commands.Post, commands.Get, commands.Delete)
    ),
    *(
        ("broker", "worker", kind("u", b"{}", client=b"c\xff"))
        for kind in (commands.Post, commands.Get, commands.Delete, commands.Mmi)
    ),
    *(
        ("worker", "broker", kind("u", 300, b"{}", client=b"c"))
        for kind in (commands.Response, commands.Event)
    ),
    *(("broker", "client", kind("u", 200, b"{}", "svc")) for kind in (commands.Response, commands.Event)),
]
DEPLOYED_ONLY: list[tuple[Role, Role, Command]] = [
    ("client", "broker", commands.Put("u", b"{}", "svc", "w1")),
    ("broker", "worker", commands.Put("u", b"{}", client=b"c")),
    ("worker", "broker", commands.Stream("u", 200, b"\x00", client=b"c")),
    ("broker", "client", commands.Stream("u", 200, b"\x00", "svc")),
]


@pytest.mark.parametrize("dialect", [Dialect.NORFAB, Dialect.DEPLOYED])
@pytest.mark.parametrize(("sender", "receiver", "command"), FORMS)
def test_every_command_comes_back_in_both_dialects(
    dialect: Dialect, sender: Role, receiver: Role, command: Command
) -> None:
    received = decode(encode(command, dialect, sender, receiver))
    assert (received.dialect, received.command, received.sender) == (dialect, command, sender)


@pytest.mark.parametrize(("sender", "receiver", "command"), DEPLOYED_ONLY)
def test_put_and_stream_are_only_deployed(sender: Role, receiver: Role, command: Command) -> None:
    assert decode(encode(command, Dialect.DEPLOYED, sender, receiver)).command == command
    with pytest.raises(EncodeError):
        encode(command, Dialect.NORFAB, sender, receiver)


def test_0_6_gets_its_own_header_from_the_broker() -> None:
    to_client = encode(commands.Response("u", 200, b"{}", "svc"), Dialect.DEPLOYED_06, "broker", "client")
    to_worker = encode(commands.Post("u", b"{}", client=b"c"), Dialect.DEPLOYED_06, "broker", "worker")
    assert (to_client[1], to_worker[1], len(to_client)) == (b"NFPC01", b"NFPW01", 7)


@pytest.mark.parametrize(("dialect", "number"), [(Dialect.NORFAB, b"\x11"), (Dialect.DEPLOYED_06, b"0x11")])
def test_management_of_a_worker_stands_under_the_worker_s_header(dialect: Dialect, number: bytes) -> None:
    """Under the broker's header MMI is an answer to a client."""
    asked = commands.Mmi("u", b'{"task":"show_broker"}', client=b"cli")
    frames_ = [b"", b"NFPW01", number, b"cli", b"", b"u", b'{"task":"show_broker"}']
    assert encode(asked, dialect, "broker", "worker") == frames_
    assert (decode(frames_).sender, decode(frames_).command) == ("broker", asked)


@pytest.mark.parametrize(("status", "written"), [(102, b"300"), (201, b"202"), (404, b"400"), (500, b"500")])
def test_deployed_statuses_are_not_told_to_the_specification_s_peers(status: int, written: bytes) -> None:
    command = commands.Response("u", status, b"{}", "svc")
    assert encode(command, Dialect.NORFAB, "broker", "client")[5] == written
    assert encode(command, Dialect.DEPLOYED, "broker", "client")[5] == str(status).encode()


def test_a_peer_is_answered_in_its_dialect() -> None:
    dialects, reply = Dialects(), commands.Response("u", 202, b"{}", "svc")
    for peer, command in ((b"spec", b"\x04"), (b"real", b"0x04")):
        dialects.decode(peer, [b"", b"NFPC01", command, b"svc", b"all", b"u", b'{"task":"add"}'])
    dialects.decode(b"old", [b"", b"NFPC01", b"0x04", b"svc", b"all", b"u", b'{"task": "add"}'])
    dialects.decode(b"old", [b"", b"NFPC01", b"0x06", b"svc", b"all", b"u", b"{}"])
    written: dict[bytes, Any] = {
        peer: encode(reply, dialects.of(peer, "client"), "broker", "client")
        for peer in (b"spec", b"real", b"old")
    }
    assert [written[peer][1:3] for peer in (b"spec", b"real", b"old")] == [
        [b"NFPB01", b"\x05"],
        [b"NFPB01", b"0x05"],
        [b"NFPC01", b"0x05"],
    ]


def test_one_name_may_be_a_client_in_one_dialect_and_a_worker_in_the_other() -> None:
    dialects = Dialects()
    dialects.decode(b"x", [b"", b"NFPW01", b"\x01", b"svc"])
    dialects.decode(b"x", [b"", b"NFPC01", b"0x06", b"svc", b"all", b"u", b"{}"])
    assert encode(commands.Keepalive("svc"), dialects.of(b"x", "worker"), "broker", "worker")[2] == b"\x02"
    assert (
        encode(commands.Response("u", 200, b"{}", "svc"), dialects.of(b"x", "client"), "broker", "client")[2]
        == b"0x05"
    )


def test_a_stranger_whose_first_words_cannot_be_read_is_answered_as_it_seems_to_write() -> None:
    dialects = Dialects()
    for peer, command in ((b"spec", b"\x77"), (b"real", b"0x77")):
        with pytest.raises(DecodeError):
            dialects.decode(peer, [b"", b"NFPW01", command, b"svc"])
    assert encode(commands.Disconnect(""), dialects.of(b"spec", "worker"), "broker", "worker")[2] == b"\x03"
    assert encode(commands.Disconnect(""), dialects.of(b"real", "worker"), "broker", "worker")[2] == b"0x03"


def test_what_is_remembered_of_peers_is_bounded() -> None:
    dialects = Dialects(limit=3)
    for number in range(10):
        dialects.decode(str(number).encode(), [b"", b"NFPW01", b"\x01", b"svc"])
        with pytest.raises(DecodeError):
            dialects.decode(b"strange %d" % number, [b"", b"NFPW01", b"\x77", b"svc"])
    assert len(dialects) == 3


@pytest.mark.parametrize("count", [3, 4, 5])
def test_disconnect_is_read_with_three_to_five_frames_and_written_with_five(count: int) -> None:
    whole = [b"", b"NFPW01", b"\x03", b"svc", b""]
    assert isinstance(decode(whole[:count]).command, commands.Disconnect)
    assert len(encode(commands.Disconnect("svc"), Dialect.NORFAB, "broker", "worker")) == 5


def test_frames_beyond_the_seventh_are_read_and_left_out() -> None:
    received = decode([b"", b"NFPC01", b"\x04", b"svc", b"all", b"u", b"{}", b"more", b"and more"])
    assert received.command == commands.Post("u", b"{}", "svc", "all")


def test_words_after_a_status_mean_nothing() -> None:
    received = decode([b"", b"NFPW01", b"\x05", b"c", b"", b"u", b"200 all is well", b"{}"])
    assert getattr(received.command, "status") == 200  # noqa: B009


@pytest.mark.parametrize("status", [b"", b"20", b"abc", b"2 0", "\u0662\u0660\u0660".encode()])
@pytest.mark.parametrize("command", [b"\x05", b"0x05"])
def test_a_status_without_three_digits_is_a_decode_error(command: bytes, status: bytes) -> None:
    with pytest.raises(DecodeError):
        decode([b"", b"NFPW01", command, b"c", b"", b"u", status, b"{}"])
