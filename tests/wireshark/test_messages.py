"""Every field of every message of our protocols is shown with its value, and what is malformed is flagged.

The messages are drawn at random from the generated strategies, and those that other implementations wrote
(tests/vectors); what tshark shows is compared with the octets and values that went in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from specwire.generated import filemq, flux
from specwire.generated.errors import DecodeError
from tests.generated.vectors import PACKAGES, package, recorded
from tests.wireshark.traffic import Connection, message, write_pcap
from tests.wireshark.tshark import NEEDS_TSHARK, Shown, dissect, tshark

pytestmark = NEEDS_TSHARK

CARRIED = tuple(name for name in PACKAGES if name != "zmtp")
EXAMPLES = 2
"""Messages of each type; the first is the smallest there is."""
LONGEST = 20_000


def drawn(name: str) -> list[Any]:
    """Return messages of every type of a package."""
    found: list[Any] = []

    @settings(
        max_examples=EXAMPLES, derandomize=True, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        for class_name in package(name).MESSAGES:
            found.append(data.draw(strategy_of(package(name).strategies, class_name)))

    draw()
    return [one for one in found if sum(map(len, one.encode())) < LONGEST]


def strategy_of(module: Any, class_name: str) -> Any:
    """Return the strategy for messages of one class; its name gets ``_`` where Python keeps it for itself."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", class_name).lower()
    return (getattr(module, name, None) or getattr(module, f"{name}_"))()


def shown_as(shown: Shown, protocol: str, one: Any, path: str) -> tuple[list[str], list[str]]:
    """Return values and octets of a field, under its plain name or under that with its message's."""
    own = re.sub(r"[^a-z0-9]+", "_", one.NAME.lower())
    for name in (f"{protocol}.{path}", f"{protocol}.{own}.{path}"):
        if shown.values(name):
            return shown.values(name), shown.octets(name)
    return [], []


def leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Every text, number or run of octets in a field, with the path that Wireshark has for it."""
    match value:
        case None:
            return
        case ((_, _), *_) if all(isinstance(pair, tuple) for pair in value):
            for name, content in value:
                yield f"{path}.name", name
                yield f"{path}.value", content
        case tuple() if path in ("groups",):
            yield from ((f"{path}.item", item) for item in value)
        case tuple():
            yield from ((path, item) for item in value)
        case _:
            yield path, value


def assert_shown(shown: Shown, protocol: str, one: Any) -> None:
    """Compare a message with what tshark shows of it."""
    if protocol != "zmtp":
        assert shown.layers() == ["zmtp", protocol] or "json" in shown.layers()
    assert shown.values(f"{protocol}.message_name") == [one.NAME]
    wanted: dict[str, list[Any]] = {}
    for name, value in one.to_dict().items():
        value = one.wire_flags if name == "flags" and hasattr(one, "wire_flags") else value
        for path, leaf in leaves(name.rstrip("_"), value):
            wanted.setdefault(path, []).append(leaf)
    for path, every in wanted.items():
        values, octets = shown_as(shown, protocol, one, path)
        assert len(values) == len(every), (path, every, values)
        for value, seen, raw in zip(every, values, octets, strict=True):
            match value:
                case int():
                    assert int(seen, 0) == value, path
                case bytes():
                    assert raw == value.hex(), path
                case str():
                    assert bytes.fromhex(raw).rstrip(b"\0").endswith(value.encode().rstrip(b"\0")), path
                    assert not value.isascii() or not value.isprintable() or seen == value, path


@pytest.fixture(scope="module")
def traffic(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Path, list[tuple[str, Any]], list[tuple[str, Any]]]]:
    """A capture of messages drawn, then of those of other implementations, and what they are."""
    path = tmp_path_factory.mktemp("traffic") / "all.pcap"
    connections, messages, vectors = [], [], []
    for number, name in enumerate(CARRIED):
        connections.append(Connection(port=50000 + number, server=6000 + number))
        for one in drawn(name):
            connections[-1].send(message(one.encode()), sizes=(65000,))
            messages.append((name, one))
    for number, name in enumerate(CARRIED):
        connections.append(Connection(port=51000 + number, server=6000 + number))
        for vector in recorded(name):
            if vector.frames and sum(map(len, vector.frames)) < LONGEST:
                connections[-1].send(message(vector.frames), sizes=(65000,))
                vectors.append((name, vector))
    write_pcap(path, connections)
    yield path, messages, vectors


def test_every_message_is_shown_and_flagged_as_the_codec_does(
    traffic: tuple[Path, list[tuple[str, Any]], list[tuple[str, Any]]], dissectors: dict[str, Path]
) -> None:
    path, messages, vectors = traffic
    options = [
        part for number, name in enumerate(CARRIED) for part in ("-o", f"{name}.ports:{6000 + number}")
    ]
    shown = dissect(path, list(dissectors.values()), *options)
    assert len(shown) == len(messages) + len(vectors)
    seen = {(name, type(one).__name__) for name, one in messages}
    assert seen == {(name, class_name) for name in CARRIED for class_name in package(name).MESSAGES}
    for (name, one), packet in zip(messages, shown, strict=False):
        assert packet.faults == [], one
        assert_shown(packet, name, one)
    refused = 0
    for (name, vector), packet in zip(vectors, shown[len(messages) :], strict=True):
        try:
            one = package(name).decode(list(vector.frames))
        except DecodeError as error:
            refused += 1
            assert packet.faults[0] == str(error), vector
            assert f"{name}.malformed.{error.kind}" in {
                field.get("name") for field in packet.packet.iter("field")
            }
        else:
            assert packet.faults == [], vector
            assert_shown(packet, name, one)
    assert refused > 20


def test_numbers_have_the_names_that_the_specification_gives_them(
    tmp_path: Path, dissectors: dict[str, Path]
) -> None:
    """Enumerations, constants with a meaning, units, the bits of flags; JSON is opened, in its NUL or without."""
    connection = Connection()
    connection.greet()
    connection.send(
        message(filemq.Cheezburger(3, 1, "/a", 5, (("size", "3"),), b"abc").encode()), client=False
    )
    connection.send(message(flux.Request(topic="a.b", payload=b'{"key": [7]}\0', flags=0x20).encode()))
    write_pcap(tmp_path / "labels.pcap", [connection])
    delivery, request = dissect(tmp_path / "labels.pcap", [dissectors[name] for name in ("filemq", "flux")])[
        -2:
    ]
    assert delivery.labels("filemq.id") == ["id: CHEEZBURGER (0x08)"]
    assert delivery.labels("filemq.operation") == ["operation: create (1)"]
    assert delivery.labels("filemq.offset") == ["offset: 5 [octets]"]
    assert delivery.labels("filemq.headers") == ["headers: 1 entry"]
    *_, line, _ = tshark(tmp_path / "labels.pcap", [dissectors["filemq"]]).splitlines()
    assert line.endswith(" CHEEZBURGER sequence=3 operation=1 filename=/a offset=5")
    assert " FILEMQ " in line
    assert request.labels("flux.userid") == ["userid: 4294967295 (userid_unknown)"]
    assert request.labels("flux.rolemask") == ["rolemask: 0"]
    assert request.labels("flux.flags.private") == ["..1. .... = private: True"]
    assert request.labels("flux.flags.streaming") == [".0.. .... = streaming: False"]
    assert request.values("json.value.number") == ["7"]


def test_what_is_behind_a_fault_is_shown_as_octets(tmp_path: Path, dissectors: dict[str, Path]) -> None:
    """A field too short ends the reading; a field of its width that is wrong does not."""
    connection = Connection()
    connection.greet()
    connection.send(message([bytes.fromhex("aaa307000001")]))
    connection.send(message([bytes.fromhex("aaa301") + b"\x06FILEMX" + b"\x02" + b"more"]))
    write_pcap(tmp_path / "faults.pcap", [connection])
    short, wrong = dissect(tmp_path / "faults.pcap", [dissectors["filemq"]])[-2:]
    assert short.faults == ["NOM.credit at octet 3: expected 8 octets, found 3 [FILEMQ v2 credit]"]
    assert short.octets("filemq.unread") == ["000001"]
    *_, line, _ = tshark(tmp_path / "faults.pcap", [dissectors["filemq"]]).splitlines()
    assert line.endswith(" NOM [malformed]")
    assert wrong.faults == [
        "OHAI.protocol at octet 3: expected 'FILEMQ', found 'FILEMX' [FILEMQ v2 protocol]",
        "OHAI at octet 11: expected the end of the frame, found 4 more octets [FILEMQ v2 OHAI]",
    ]
    assert wrong.values("filemq.version") == ["0x02"]
    assert wrong.octets("filemq.surplus") == [b"more".hex()]


HOSTILE = (
    ("line\nbreak\x1b[31m.txt", "line\\x0abreak\\x1b[31m.txt"),
    ("a\x7fb\x9bc", "a\\x7fb\\x9bc"),
    ("\u202egpj.exe\u2066\u2028", "\\u202egpj.exe\\u2066\\u2028"),
    ("é 😀 <script>", "é 😀 <script>"),
)
"""Texts of a peer, and how the packet list shows them: escaped as in Python."""


@pytest.mark.parametrize(("sent", "shown"), HOSTILE)
def test_text_of_a_peer_cannot_control_a_terminal(
    sent: str, shown: str, tmp_path: Path, dissectors: dict[str, Path]
) -> None:
    """It is escaped in the packet list and in the tree."""
    connection = Connection()
    connection.greet()
    connection.send(message(flux.Request(topic=sent, matchtag=7).encode()))
    write_pcap(tmp_path / "hostile.pcap", [connection])
    last = tshark(tmp_path / "hostile.pcap", [dissectors["flux"]], "-Y", "flux").removesuffix("\n")
    assert f"topic={shown}" in last and "".join(last.split("  ")).isprintable()
    tree = tshark(tmp_path / "hostile.pcap", [dissectors["flux"]], "-Y", "flux", "-V")
    assert all(line.isprintable() for line in tree.split("\n"))
    assert any(line.strip().startswith("topic") and "\x1b" not in line for line in tree.split("\n"))


def test_a_reply_is_paired_with_its_request(tmp_path: Path, dissectors: dict[str, Path]) -> None:
    """By matchtag and side: not with a request of its own side, of another connection, or of no matchtag."""
    request = [message(flux.Request(topic="a", matchtag=number).encode()) for number in (7, 8, 0)]
    reply = [message(flux.Response(matchtag=number).encode()) for number in (8, 7, 7, 0)]
    first, second = Connection(), Connection(port=50000)
    for connection in (first, second):
        connection.greet()
    for octets in request:
        first.send(octets)
    first.send(message(flux.Response(matchtag=8).encode()))
    for octets in reply:
        first.send(octets, client=False)
    second.send(reply[0], client=False)
    write_pcap(tmp_path / "pairs.pcap", [first, second])
    packets = dissect(tmp_path / "pairs.pcap", [dissectors["flux"]], "-2", "-Y", "tcp")[4:]
    numbers = [(packet.values("flux.reply_in"), packet.values("flux.request_in")) for packet in packets[:8]]
    assert numbers == [
        (["10"], []), (["9"], []), ([], []),  # packets 5, 6, 7: requests 7, 8, 0
        ([], []),
        ([], ["6"]), ([], ["5"]), ([], ["5"]), ([], []),  # packets 9 to 12
    ]  # fmt: skip
    assert packets[-1].values("flux.request_in") == []
    assert [float(text) for text in packets[4].values("flux.reply_time")] == pytest.approx([3e-6])


def test_every_command_of_zmtp_is_shown(tmp_path: Path, dissectors: dict[str, Path]) -> None:
    """Each has a frame of its own on the stream; the greeting stands first, but it is a unit like any other."""
    commands = [one for one in drawn("zmtp") if not one.NAME.startswith("message-")]
    assert {type(one).__name__ for one in commands} == {
        name for name in package("zmtp").MESSAGES if not name.startswith("Message")
    }
    connection = Connection()
    connection.greet()
    for one in commands:
        connection.send(b"".join(one.encode()), sizes=(65000,))
    write_pcap(tmp_path / "commands.pcap", [connection])
    for one, packet in zip(
        commands, dissect(tmp_path / "commands.pcap", [dissectors["zmtp"]])[4:], strict=True
    ):
        assert packet.faults == [], one
        assert_shown(packet, "zmtp", one)
