"""What the `specwire flux` commands do with a broker of ours, and what they say where something is wrong."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from specwire.runtime.flux.errors import FluxError
from specwire.runtime.flux.service import allow
from specwire.runtime.flux.views import ServiceRequest
from tests.runtime.cli.commands import Outcome, specwire
from tests.runtime.cli.flux_instance import lone_broker
from tests.runtime.flux.scripted import Conversation, broker


class Desk:
    """A service with every kind of answer."""

    async def echo(self, request: ServiceRequest) -> bytes | None:
        """Give the payload back."""
        return request.payload

    async def count(self, request: ServiceRequest) -> AsyncIterator[dict[str, int]]:
        """Count to three."""
        for number in range(3):
            yield {"n": number}

    async def refuse(self, request: ServiceRequest) -> None:
        """Say no, in words that would forge a line."""
        raise FluxError(5, "no\nspecwire: all is well\x1b[2J")

    @allow(guests=True)
    async def ping(self, request: ServiceRequest) -> dict[str, object]:
        """Answer a ping with other padding."""
        return {"seq": 0, "pad": "q", "route": "", "userid": 0, "rolemask": 1, "rank": 0}


@pytest.fixture
def uri(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A broker with a desk, which FLUX_URI names."""
    with lone_broker(desk=Desk()) as place:
        monkeypatch.setenv("FLUX_URI", place)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        yield place


Capture = pytest.CaptureFixture[str]

pytestmark = pytest.mark.usefixtures("uri")


def flux(capfd: Capture, *arguments: str) -> Outcome:
    """Run a command that has to work."""
    outcome = specwire(capfd, "flux", *arguments)
    assert (outcome.status, outcome.err) == (0, ""), outcome
    return outcome


def refused(capfd: Capture, *arguments: str, status: int = 1) -> str:
    """Run a command that cannot work, and return the sentence that it says."""
    outcome = specwire(capfd, "flux", *arguments)
    assert (outcome.status, outcome.err[:10], outcome.err.count("\n")) == (status, "specwire: ", 1), outcome
    return outcome.err[10:-1]


def test_attributes_are_set_read_listed_and_taken_back(capfd: Capture) -> None:
    assert flux(capfd, "setattr", "my.own", "a value").out == ""
    assert flux(capfd, "getattr", "my.own").out == "a value\n"
    assert json.loads(flux(capfd, "getattr", "size", "--json").out) == {
        "name": "size",
        "value": "1",
        "flags": 1,
    }
    names = flux(capfd, "lsattr").out.splitlines()
    assert names == sorted(names) and {"my.own", "rank", "size"} <= {*names}
    assert f"{'my.own':<40}a value\n" in flux(capfd, "lsattr", "-v").out
    assert json.loads(flux(capfd, "lsattr", "--json").out)["my.own"] == "a value"
    flux(capfd, "setattr", "--expunge", "my.own")
    assert refused(capfd, "getattr", "my.own") == (
        "my.own: No such file or directory; `specwire flux lsattr` lists what there is"
    )


def test_attribute_that_is_the_brokers_own(capfd: Capture) -> None:
    assert refused(capfd, "setattr", "size", "4") == "size: size cannot be changed"


@pytest.mark.parametrize("arguments", [["x"], ["x", "y", "--expunge"]])
def test_attribute_is_set_or_taken_back(arguments: list[str], capfd: Capture) -> None:
    assert refused(capfd, "setattr", *arguments, status=2) == "either a VALUE is wanted, or --expunge"


def test_rpc_prints_the_payload_as_it_came(capfd: Capture) -> None:
    assert flux(capfd, "rpc", "desk.echo", '{"a":', "[1]}").out == '{"a": [1]}\n'
    assert flux(capfd, "rpc", "desk.echo").out == ""
    assert flux(capfd, "rpc", "--streaming", "desk.count").out == '{"n":0}\n{"n":1}\n{"n":2}\n'
    assert flux(capfd, "rpc", "--noresponse", "desk.refuse").out == ""
    assert flux(capfd, "rpc", "--nodeid", "0", "--timeout", "1m", "attr.get", '{"name":"rank"}').out == (
        '{"value":"0","flags":1}\n'
    )


def test_rpc_reads_standard_input(capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"a": 1}\n')))
    assert flux(capfd, "rpc", "desk.echo").out == '{"a": 1}\n'


def test_raw_rpc_changes_no_octet(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\0\n")))
    with pytest.raises(SystemExit):
        from specwire.runtime.cli.main import main

        main(["flux", "rpc", "--raw", "desk.echo"])
    assert capfdbinary.readouterr().out == b"\xff\0\n"


def test_rpc_that_is_answered_with_an_error(capfd: Capture) -> None:
    assert refused(capfd, "rpc", "no.such") == "no.such: No service matching no.such is registered"
    assert refused(capfd, "rpc", "attr.x") == "attr.x: Unknown service method 'attr.x'"
    assert refused(capfd, "rpc", "attr.get", "{}") == "attr.get: Protocol error"
    assert refused(capfd, "rpc", "desk.refuse") == r"desk.refuse: no\nspecwire: all is well\x1b[2J"
    assert refused(capfd, "rpc", "--nodeid", "7", "attr.list") == (
        "attr.list: No route to host; `specwire flux overlay status` shows which ranks are there"
    )
    assert "overlay status" in refused(capfd, "rpc", "--nodeid", "upstream", "attr.list")
    assert refused(capfd, "rpc", "--nodeid", "moon", "attr.list").startswith("'moon' is no rank, no host")


def test_payload_that_is_no_object(capfd: Capture) -> None:
    for words in (["rpc", "desk.echo", "[1]"], ["event", "pub", "a", "hello"], ["rpc", "desk.echo", '{"a":']):
        assert "the payload is no JSON object: " in refused(capfd, *words, status=2)


def test_ping_finds_ranks_hosts_and_services(capfd: Capture) -> None:
    """The host is called localhost here, as the engine is told."""
    for arguments, header in [
        (["0"], "flux-ping 0!broker"),
        (["localhost"], "flux-ping localhost!broker (rank 0)"),
        (["localhost!broker"], "flux-ping localhost!broker (rank 0)"),
        (["broker"], "flux-ping any!broker"),
        (["--rank", "any", "broker"], "flux-ping any!broker"),
        (["--rank", "00", "broker"], "flux-ping 0!broker"),
    ]:
        lines = flux(capfd, "ping", "-c", "1", "--pad", "3", *arguments).out.splitlines()
        assert lines[0] == header
        assert lines[1].startswith("0!broker.ping pad=3 seq=0 time=")


def test_ping_by_the_largest_messages(capfd: Capture) -> None:
    assert " pad=16000000 seq=0 " in flux(capfd, "ping", "-c", "1", "--pad", "16000000", "0").out


def test_attributes_without_a_value_are_listed(capfd: Capture) -> None:
    """A flux-core broker lists them, and answers ENOENT (2) to attr.get."""

    def script(c: Conversation) -> None:
        c.reply(c.hear_rpc("attr.list"), payload=b'{"names":["size","parent-uri"]}\0')
        request = c.hear_rpc("attr.get")
        assert request[2] == b'{"name":"parent-uri"}\0'
        c.reply(request, errnum=2)
        c.reply(c.hear_rpc("attr.get"), payload=b'{"value":"3","flags":1}\0')

    with broker(script) as place:
        listing = flux(capfd, "lsattr", "--values", "--uri", place).out
    assert listing == f"{'parent-uri':<40}-\n{'size':<40}3\n"
    with broker(script) as place:
        found = json.loads(flux(capfd, "lsattr", "--json", "--uri", place).out)
    assert found == {"parent-uri": None, "size": "3"}


def test_an_attribute_cannot_control_a_terminal(capfd: Capture) -> None:
    """Text output is escaped, and JSON output has the original value."""
    hostile = "a\nb\x1b[2J\x9b\x7f\u202e\u2066"

    def script(c: Conversation) -> None:
        payload = json.dumps({"value": hostile, "flags": 1}).encode() + b"\0"
        c.reply(c.hear_rpc("attr.get"), payload=payload)

    with broker(script) as place:
        shown = flux(capfd, "getattr", "size", "--uri", place).out
    assert shown == r"a\nb\x1b[2J\x9b\x7f\u202e\u2066" + "\n"
    with broker(script) as place:
        printed = flux(capfd, "getattr", "size", "--json", "--uri", place).out
    assert printed.replace("\n", "").isprintable() and json.loads(printed)["value"] == hostile


def test_rank_is_found_where_the_hosts_are_no_list(capfd: Capture) -> None:
    """A broker's fault, or a list of gigabytes, is in nobody's way who gives a rank."""

    def script(c: Conversation) -> None:
        c.reply(c.hear_rpc("attr.get"), payload=b'{"value":"a[0-9999999999]","flags":1}\0')
        with suppress(EOFError):
            c.reply(c.hear_rpc("broker.ping"), errnum=113)

    with broker(script) as place:
        sentence = specwire(capfd, "flux", "ping", "3", "--uri", place).err
    assert sentence.startswith("specwire: 3!broker.ping: No route to host")
    with broker(script) as place:
        assert refused(capfd, "ping", "--rank", "a7", "broker", "--uri", place) == (
            "hostlist: there are more than 1000000 host names"
        )


def test_ping_for_programs(capfd: Capture) -> None:
    lines = flux(capfd, "ping", "--json", "-c", "3", "-i", "1ms", "0").out.splitlines()
    told = [json.loads(line) for line in lines]
    assert sorted(pong["seq"] for pong in told) == [0, 1, 2]
    assert {(pong["topic"], pong["rank"], pong["rolemask"]) for pong in told} == {("broker.ping", 0, 5)}


def test_pings_in_a_batch_are_told_when_all_are_sent(capfd: Capture) -> None:
    """No answer comes between those that are sent, however many; without --count it would never end."""
    asked: list[bytes] = []

    def script(c: Conversation) -> None:
        c.reply(c.hear_rpc("attr.get"), payload=b'{"value":"a,b","flags":1}\0')
        with suppress(EOFError):
            while True:
                request = c.hear_rpc("broker.ping")
                asked.append(request[2])
                told = json.loads(request[2][:-1]) | {"route": "r", "userid": 0, "rolemask": 1, "rank": 1}
                c.reply(request, payload=json.dumps(told).encode() + b"\0")

    with broker(script) as place:
        lines = flux(capfd, "ping", "--batch", "-c", "1500", "-i", "0", "1", "--uri", place).out.splitlines()
    assert (len(lines), len(asked)) == (1501, 1500)
    assert {line.split()[2] for line in lines[1:]} == {f"seq={number}" for number in range(1500)}
    assert refused(capfd, "ping", "-b", "0", status=2).startswith("--batch wants --count")


def test_ping_that_fails(capfd: Capture) -> None:
    outcome = specwire(capfd, "flux", "ping", "-c", "1", "9")
    assert (outcome.status, outcome.out) == (1, "flux-ping 9!broker\n")
    assert outcome.err.startswith("specwire: 9!broker.ping: No route to host; ")
    assert refused(capfd, "ping", "4294967294").startswith("'4294967294' is no rank")
    assert refused(capfd, "ping", "nosuch") == "nosuch.ping: No service matching nosuch.ping is registered"
    assert refused(capfd, "ping", "-c", "1", "desk") == (
        "0!desk.ping: the octets that were sent along came back changed"
    )
    assert refused(capfd, "ping", "-r", "1", "0!broker", status=2) == "--rank and '0!broker' both say where"
    assert refused(capfd, "ping", "!broker", status=2) == "'!broker': RANK!SERVICE is wanted"


def test_event_has_a_number_when_it_is_waited_for(capfd: Capture) -> None:
    assert flux(capfd, "event", "pub", "--synchronous", "a.b").out == ""
    assert json.loads(flux(capfd, "event", "pub", "--json", "a.b").out)["topic"] == "a.b"
    assert json.loads(flux(capfd, "event", "pub", "--json", "-l", "-p", "a.b", '{"x":1}').out)["sequence"] > 2


def test_events_of_several_prefixes_come_in_order_and_once(
    capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`a.b` is covered by `a.`; the rest is what a line may not hold, and what is not text."""
    events = [
        ("a.b", b'{"n":1}\0'),
        ("c", None),
        ("a.b.c", b'{"n":\n"\xc2\x9b2J"}\0'),
        ("c", b"no text"),
        ("a.", b"text\0"),
    ]

    def script(c: Conversation) -> None:
        for prefix in (b"a.", b"c"):
            request = c.hear_rpc("event.subscribe")
            assert request[2] == b'{"topic":"%s"}\0' % prefix
            c.reply(request)
        for number, (topic, payload) in enumerate(events, 1):
            c.event(topic, payload, number)
        c.hear_rpc("event.unsubscribe")
        c.hear_rpc("event.unsubscribe")

    with broker(script) as place:
        printed = flux(capfd, "event", "sub", "-c", "5", "a.", "a.b", "c", "--uri", place).out
    assert printed == ('a.b\t{"n":1}\nc\t\na.b.c\t{"n": "\\u009b2J"}\nmalformed message ignored\na.\ttext\n')
    with broker(script) as place:
        printed = flux(capfd, "event", "sub", "-c", "5", "a.", "a.b", "c", "--uri", place, "--json").out
    assert [json.loads(line) for line in printed.splitlines()] == [
        {"topic": "a.b", "sequence": 1, "payload": {"n": 1}},
        {"topic": "c", "sequence": 2, "payload": None},
        {"topic": "a.b.c", "sequence": 3, "payload": {"n": "\x9b2J"}},
        {"topic": "c", "sequence": 4, "octets": b"no text".hex()},
        {"topic": "a.", "sequence": 5, "text": "text"},
    ]


def test_log_is_read_and_cleared(capfd: Capture) -> None:
    line = "<48>1 2026-01-02T03:04:05.000006Z 0 mine 7 - - hello\\u001b[2J"
    assert "broker.info[0]: rank 0 is in the tree" in flux(capfd, "dmesg", "--read-clear").out
    for text in (line, "<no line of RFC 5424>"):
        flux(capfd, "rpc", "--raw", "log.append", text)
    shown = flux(capfd, "dmesg").out.splitlines()
    assert shown[0].endswith(r" mine.info[0]: hello\u001b[2J")
    assert shown[1] == "<no line of RFC 5424>"
    assert flux(capfd, "dmesg", "--read-clear").out.splitlines() == shown
    assert flux(capfd, "dmesg").out == ""
    flux(capfd, "rpc", "--raw", "log.append", line)
    assert flux(capfd, "dmesg", "--new").out == ""
    assert flux(capfd, "dmesg", "--clear").out == ""
    assert flux(capfd, "dmesg").out == ""
    assert "have no sense" in refused(capfd, "dmesg", "-C", "-f", status=2)
    assert refused(capfd, "dmesg", "-d", status=2) == "--delta has no sense without --human"
    assert refused(capfd, "dmesg", "--color", "blue", status=2) == (
        "--color blue: always, never or auto is wanted"
    )


def test_statistics_are_json(capfd: Capture) -> None:
    assert json.loads(flux(capfd, "stats").out)["requests"] > 0
    assert json.loads(flux(capfd, "stats", "heartbeat", "-N", "0").out)["torpid"] == 30.0
    assert refused(capfd, "stats", "attr") == "attr.stats-get: Unknown service method 'attr.stats-get'"


def test_tree_of_one(capfd: Capture) -> None:
    assert flux(capfd, "overlay", "status").out == "0 localhost: full\n"
    assert flux(capfd, "overlay", "status", "--wait", "full", "--summary").out == "full\n"
    assert flux(capfd, "overlay", "status", "--down").out == ""
    assert "one of full, partial" in refused(capfd, "overlay", "status", "--wait", "well", status=2)
    assert refused(capfd, "overlay", "status", "--wait", "lost", "--timeout", "1ms") == (
        "rank 0: the subtree was not lost in 0.001 s; --timeout allows it longer"
    )


COMMANDS = [
    ["ping", "0"],
    ["rpc", "a.b"],
    ["event", "pub", "a"],
    ["event", "sub"],
    ["getattr", "size"],
    ["setattr", "a", "b"],
    ["lsattr"],
    ["overlay", "status"],
    ["dmesg"],
    ["stats"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_broker(
    command: list[str], capfd: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is none, it denies access, it hangs up, or nobody has said where it is."""
    place = f"local://{tmp_path}/x"
    assert refused(capfd, *command, "--uri", place) == (
        f"there is no broker at {place}: no such socket; `specwire flux start` starts an instance"
    )
    with broker(lambda c: None, authorisation=b"\1") as place:
        assert refused(capfd, *command, "--uri", place) == (
            f"the broker at {place} denies access: Operation not permitted; its owner can --allow-guests"
        )
    assert "not of the form local://" in refused(capfd, *command, "--uri", "tcp://x", status=2)
    monkeypatch.delenv("FLUX_URI")
    assert refused(capfd, *command, status=2) == (
        "no broker was named, and FLUX_URI is not set; give --uri, or run this in an instance:"
        " specwire flux start -- COMMAND"
    )


def hang_up(c: Conversation) -> None:
    """Go away after the first message."""
    c.hear()


@pytest.mark.parametrize("command", [c for c in COMMANDS if c[:2] != ["event", "pub"]], ids=" ".join)
def test_broker_that_goes_away(command: list[str], capfd: Capture) -> None:
    with broker(hang_up) as place:
        sentence = refused(capfd, *command, "--uri", place)
    assert sentence.endswith(f"the connection to {place} is lost: the broker has closed it")


@pytest.mark.parametrize(
    "command", [c for c in COMMANDS if c[0] != "event"] + [["event", "pub", "-s", "a"]], ids=" ".join
)
def test_broker_that_says_nothing(command: list[str], capfd: Capture) -> None:
    def wait(c: Conversation) -> None:
        with pytest.raises(EOFError):
            while True:
                c.hear()

    with broker(wait) as place:
        sentence = refused(capfd, *command, "--uri", place, "--timeout", "1ms")
    assert "0.001 s" in sentence and sentence.endswith("; --timeout allows it longer")


def test_duration_that_is_none(capfd: Capture) -> None:
    outcome = specwire(capfd, "flux", "getattr", "size", "--timeout", "soon")
    assert outcome.status == 2
    assert "'soon' is no duration" in outcome.err
