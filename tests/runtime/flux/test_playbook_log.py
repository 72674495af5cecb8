"""The log: what is in it, how it comes to rank 0, and that it stays small and in order; one sentence a test."""

from __future__ import annotations

import re

import msgspec
import pytest

from specwire.generated.flux import NODEID_ANY, Request, Response
from specwire.runtime.flux.actions import ToChild, ToParent
from specwire.runtime.flux.broker import BrokerEngine
from specwire.runtime.flux.events import Dropped, PeerRefused
from specwire.runtime.flux.flags import NORESPONSE, STREAMING
from specwire.runtime.flux.journal import MAX_WAITING, RING_LINES
from specwire.runtime.flux.severity import Severity
from specwire.runtime.flux.wires import WIRES
from tests.runtime.flux.tree import CHAIN, LocalClient, Tree, alone


def lines(client: LocalClient, tag: int) -> list[str]:
    """Return the lines of a dmesg."""
    return [
        (answer.payload or b"").rstrip(b"\0").decode() for answer in client.answers(tag) if not answer.errnum
    ]


def test_log_ring_keeps_the_newest() -> None:
    """`log.append` with a ring buffer."""
    tree = Tree(1)
    client = tree.client(0)
    for number in range(RING_LINES + 5):
        client.send(Request(topic="log.append", payload=b"<30>1 - %d" % number, flags=4))
    tag = client.request("log.dmesg", {"follow": False, "nobacklog": False}, flags=STREAMING)
    got = lines(client, tag)
    assert len(got) == RING_LINES
    assert (got[0], got[-1]) == ("<30>1 - 5", f"<30>1 - {RING_LINES + 4}")
    assert client.ask("log.clear").errnum == 0
    assert lines(client, client.request("log.dmesg", {}, flags=STREAMING)) == []


@pytest.mark.parametrize("payload", [None, b"", b"no line", b"<1>" + b"x" * 3000, b"<1>a\0b"])
def test_what_is_no_log_line(payload: bytes | None) -> None:
    """It is EPROTO, and not logged."""
    tree = Tree(1)
    client = tree.client(0)
    tree.engines[0].journal.clear()
    client.send(Request(topic="log.append", payload=payload))
    (answer,) = client.received
    assert isinstance(answer, Response)
    assert (answer.errnum, tree.engines[0].journal.lines()) == (71, [])


def test_line_breaks_do_not_make_lines() -> None:
    """One append is one line."""
    tree = Tree(1)
    tree.engines[0].journal.clear()
    tree.client(0).send(Request(topic="log.append", payload=b"<1>1 a\n<1>1 forged\n"))
    tree.engines[0].log("one\ntwo", 0.0, Severity.INFO)
    assert tree.engines[0].journal.lines() == [
        "<1>1 a <1>1 forged",
        "<48>1 1970-01-01T00:00:00.000000Z 0 broker 11042 - - one two",
    ]


def told(engine: BrokerEngine) -> list[tuple[int, str, str]]:
    """Return severity, rank and text of the log lines of a broker."""
    found = [
        re.fullmatch(r"<(\d+)>1 \S+ (\S+) broker 11042 - - (.*)", line) for line in engine.journal.lines()
    ]
    return [(int(line[1]) >> 3, line[2], line[3]) for line in found if line is not None]


@pytest.mark.parametrize("protocol", WIRES)
def test_rank_0_has_the_log_of_the_instance(protocol: str) -> None:
    """What is worth it goes up; a broker between keeps its own alone. 6 is for information, 7 for debugging.

    An edition that has no word for "nobody answers" has an answer that nobody minds.
    """
    tree = Tree(3, 1, settings=lambda given: msgspec.structs.replace(given, wire=WIRES[protocol]))
    for rank, engine in tree.engines.items():
        engine.journal.clear()
        tree.perform(rank, engine.log(f"of rank {rank}", 0.0, Severity.INFO))
        tree.perform(rank, engine.log("not worth it", 0.0))
    tree.settle()
    own = [(7, str(rank), "not worth it") for rank in range(3)]
    assert told(tree.engines[2]) == [(6, "2", "of rank 2"), own[2]]
    assert told(tree.engines[1]) == [(6, "1", "of rank 1"), own[1]]
    assert told(tree.engines[0]) == [
        (6, "0", "of rank 0"),
        own[0],
        (6, "1", "of rank 1"),
        (6, "2", "of rank 2"),
    ]
    assert tree.reported(Dropped) == []
    assert tree.pending() == {}


def test_lines_of_programs_go_up_too() -> None:
    """By the severity in the line, 6 here; a line that was sent to one rank is for this one, and for rank 0."""
    tree = Tree(3, 1, settings=lambda given: msgspec.structs.replace(given, forward_level=6))
    for engine in tree.engines.values():
        engine.journal.clear()
    client = tree.client(2)
    for topic_rank, line in ((NODEID_ANY, b"<32>1 - a\0"), (NODEID_ANY, b"<56>1 - b\0"), (1, b"<24>1 - c\0")):
        client.send(Request(topic="log.append", payload=line, flags=NORESPONSE, nodeid=topic_rank))
    tree.settle()
    assert [engine.journal.lines() for engine in tree.engines.values()] == [
        ["<32>1 - a", "<24>1 - c"],
        ["<24>1 - c"],
        ["<32>1 - a", "<56>1 - b"],
    ]


def test_who_follows_at_rank_0_hears_of_all_ranks() -> None:
    """As it happens."""
    tree = Tree(7)
    client = tree.client(0)
    tag = client.request("log.dmesg", {"follow": True, "nobacklog": True}, flags=STREAMING)
    tree.perform(6, tree.engines[6].log("far away", 0.0, Severity.NOTICE))
    tree.settle()
    assert lines(client, tag) == ["<40>1 1970-01-01T00:00:00.000000Z 6 broker 11042 - - far away"]


def test_large_instance_spares_rank_0(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no fault stays with those who logged it; warnings go up."""
    monkeypatch.setattr("specwire.runtime.flux.journal.SMALL_INSTANCE", 2)
    tree = Tree(3)
    tree.perform(1, tree.engines[1].log("beware", 0.0, Severity.WARNING))
    tree.settle()
    assert [line for line in told(tree.engines[0]) if line[1] != "0"] == [(4, "1", "beware")]
    assert (6, "1", "rank 1 is in the tree") in told(tree.engines[1])


def test_programs_may_log_for_debugging() -> None:
    """Rank 0 has such lines of theirs, and their severity may be missing."""
    tree = Tree(2)
    client = tree.client(1)
    for line in (b"<56>1 - x\0", b"<no number> y\0"):
        client.send(Request(topic="log.append", payload=line, flags=NORESPONSE))
    tree.settle()
    assert tree.engines[0].journal.lines()[-2:] == ["<56>1 - x", "<no number> y"]


def test_log_of_a_tree_that_comes_and_is_broken() -> None:
    """Joins, losses and what becomes of the tree; what was logged without a parent is told when there is one."""
    tree = Tree(3, 1, rejoin=True)
    root = tree.engines[0]
    assert sorted(text for _, _, text in told(root) if "in the tree" in text) == [
        f"rank {rank} is in the tree" for rank in range(3)
    ]
    assert (6, "0", "the subtree is full") in told(root)
    root.journal.clear()
    tree.kill(1)
    tree.settle()
    (loss,) = [text for severity, rank, text in told(root) if (severity, rank) == (3, "0")]
    assert re.fullmatch("rank 1 \\([0-9a-f]{8}, vm\\) is lost: the connection has ended", loss)
    assert (6, "0", "the subtree is degraded") in told(root)
    tree.start(1)
    tree.advance(10.0)
    assert (3, "2", "the parent is lost: the connection has ended") in told(root)


def test_lines_that_wait_for_a_parent_are_bounded() -> None:
    """The newest are kept."""
    leaf, root = alone(1, msgspec.structs.replace(CHAIN, forward_level=6)), alone(0)
    for number in range(MAX_WAITING + 5):
        leaf.log(f"line {number}", 0.0, Severity.INFO)
    root.start(0.0)
    root.journal.clear()
    (hello,) = [action.message for action in leaf.start(0.0) if isinstance(action, ToParent)]
    for answer in root.from_child("middle", hello, 0.0):
        if isinstance(answer, ToChild):
            sent = leaf.from_parent(answer.message, 0.0)
    messages = [action.message for action in sent if isinstance(action, ToParent)]
    told_up = [message.payload or b"" for message in messages if isinstance(message, Request)]
    assert len(told_up) == MAX_WAITING + 1
    assert told_up[0].endswith(b"line 5\0")
    assert told_up[-1].endswith(b"rank 1 is in the tree\0")


def test_long_text_is_cut_so_that_all_brokers_take_the_line() -> None:
    """Octets count, not characters, and no character is cut in two."""
    tree = Tree(2)
    tree.perform(1, tree.engines[1].log("ä" * 3000, 0.0, Severity.ERROR))
    tree.settle()
    (line,) = [line for line in tree.engines[0].journal.lines() if "ä" in line]
    assert line.endswith(" - - " + "ä" * 950)


def test_a_flood_of_refusals_does_not_flood_the_log() -> None:
    """Twenty lines in ten seconds; the next one after that tells how many there were more."""
    tree = Tree(2)
    for _ in range(100):
        tree.perform(1, tree.engines[1].happened(PeerRefused("no key"), 0.0))
    tree.perform(1, tree.engines[1].happened(PeerRefused("no key"), 10.0))
    tree.settle()
    refused = [text for _, rank, text in told(tree.engines[0]) if rank == "1" and "tree" not in text]
    assert refused == ["refused a peer: no key"] * 20 + [
        "80 more such lines were left out in 10 s",
        "refused a peer: no key",
    ]


def test_dmesg_follows() -> None:
    """With `follow` those that come, too, until it is cancelled; without the backlog only those."""
    tree = Tree(2)
    client = tree.client(1)
    tree.perform(0, tree.engines[0].log("before", 0.0))
    tag = client.request("log.dmesg", {"follow": True, "nobacklog": True}, nodeid=0, flags=STREAMING)
    tree.settle()
    tree.perform(0, tree.engines[0].log("after", 0.0))
    tree.settle()
    assert [line.rsplit(" ", 1)[-1] for line in lines(client, tag)] == ["after"]
    client.request("log.cancel", {"matchtag": tag}, nodeid=0, flags=4)
    tree.settle()
    assert client.answers(tag)[-1].errnum == 61
    assert tree.pending() == {}
