"""`specwire flux overlay status` of trees in which not all is well, as flux-core prints them."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from tests.runtime.cli.commands import Outcome, specwire
from tests.runtime.flux.scripted import Conversation, broker

Children = dict[int, list[int]]


def tree(
    size: int,
    below: Children,
    told: dict[int, list[str]],
    *,
    hosts: str,
    own: dict[int, str],
    dead: tuple[int, ...] = (),
) -> Callable[[Conversation], None]:
    """Return a broker that tells of a tree.

    Args:
        size: the number of brokers.
        below: the children of each rank that has some.
        told: what each rank that answers says of its children.
        hosts: the list of hosts.
        own: what each rank says of itself; full where it is not said.
        dead: ranks from which EHOSTUNREACH comes.
    """

    def shape(rank: int) -> dict[str, Any]:
        children = [shape(child) for child in below.get(rank, [])]
        return {"rank": rank, "size": 1 + sum(c["size"] for c in children), "children": children}

    def health(rank: int) -> dict[str, Any]:
        children = [
            {"rank": child, "status": status, "duration": 90.0}
            for child, status in zip(below.get(rank, []), told.get(rank, []), strict=True)
        ]
        return {"rank": rank, "status": own.get(rank, "full"), "duration": 153.2688, "children": children}

    def answer(topic: bytes, rank: int, asked: dict[str, Any]) -> dict[str, Any]:
        match topic:
            case b"attr.get":
                return {"value": {"size": str(size), "hostlist": hosts}[asked["name"]]}
            case b"overlay.topology":
                return shape(asked["rank"])
            case _:
                return health(rank)

    def script(c: Conversation) -> None:
        with suppress(EOFError):
            while True:
                request = c.hear()
                rank = int.from_bytes(request[-1][-8:-4], "big")
                if rank in dead:
                    c.reply(request, errnum=113)
                    continue
                asked = json.loads(request[2][:-1]) if len(request) == 4 else {}
                told = answer(request[1], rank, asked)
                c.reply(request, payload=json.dumps(told).encode() + b"\0")

    return script


def status(capfd: pytest.CaptureFixture[str], script: Callable[[Conversation], None], *arguments: str) -> str:
    """Return what the command prints."""
    with broker(script) as uri:
        outcome = specwire(capfd, "flux", "overlay", "status", "--uri", uri, *arguments)
    assert (outcome.status, outcome.err) == (0, "")
    return outcome.out


FLAT = tree(
    8,
    {0: [*range(1, 8)]},
    {0: ["offline", "full", "full", "full", "offline", "full", "offline"]},
    hosts="test[0-7]",
    own={0: "partial"},
)


def test_flat_tree_as_in_the_page_of_flux_core(capfd: pytest.CaptureFixture[str]) -> None:
    """flux-overlay(1), "Examples"."""
    assert status(capfd, FLAT) == (
        "0 test0: partial\n"
        "├─ 1 test1: offline\n"
        "├─ 2 test2: full\n"
        "├─ 3 test3: full\n"
        "├─ 4 test4: full\n"
        "├─ 5 test5: offline\n"
        "├─ 6 test6: full\n"
        "└─ 7 test7: offline\n"
    )


def test_times(capfd: pytest.CaptureFixture[str]) -> None:
    """-v tells since when; -vv asks every broker that is there, and tells how long that took."""
    assert status(capfd, FLAT, "-v").splitlines()[:2] == [
        "0 test0: partial for 2.55448m",
        "├─ 1 test1: offline for 1.5m",
    ]
    lines = re.sub(r"\d+\.\d{3} ms", "# ms", status(capfd, FLAT, "-vv")).splitlines()
    assert lines[:3] == [
        "0 test0: partial for 2.55448m (# ms)",
        "├─ 1 test1: offline for 1.5m",
        "├─ 2 test2: full for 2.55448m (# ms)",
    ]


DEEP = tree(
    10,
    {0: [1, 2, 3], 1: [4, 5], 2: [6], 3: [7], 4: [8], 7: [9]},
    {0: ["degraded", "full", "full"], 1: ["lost", "full"], 2: ["full"], 7: ["full"]},
    hosts="vm",
    own={0: "degraded", 1: "degraded"},
    dead=(3,),
)


def test_what_is_below_a_broker_that_is_gone(capfd: pytest.CaptureFixture[str]) -> None:
    """Rank 4 is lost, so rank 8 is presumed to be; rank 3 does not answer, though its parent has not noticed."""
    assert status(capfd, DEEP) == (
        "0 vm: degraded\n"
        "├─ 1 : degraded\n"
        "│  ├─ 4 : lost\n"
        "│  │  └─ 8 : lost\n"
        "│  └─ 5 : full\n"
        "├─ 2 : full\n"
        "│  └─ 6 : full\n"
        "└─ 3 : No route to host\n"
        "   └─ 7 : full\n"
        "      └─ 9 : full\n"
    )


def test_what_is_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    down = ["0 vm: degraded", "└─ 1 : degraded", "   └─ 4 : lost"]
    assert status(capfd, DEEP, "--down", "--no-ghost").splitlines() == down
    assert status(capfd, DEEP, "--down", "--no-ghost", "--no-pretty").splitlines() == [
        line.lstrip("└─ ") for line in down
    ]
    assert status(capfd, DEEP, "--summary", "-v") == "degraded for 2.55448m\n"


def test_colours(capfd: pytest.CaptureFixture[str]) -> None:
    lines = status(capfd, DEEP, "--color", "always").splitlines()
    assert lines[2:4] == ["│  ├─ 4 : \x1b[31mlost\x1b[39m", "│  │  └─ 8 : \x1b[90mlost\x1b[39m"]
    assert status(capfd, FLAT, "-L", "always").splitlines()[1] == "├─ 1 test1: \x1b[33moffline\x1b[39m"


def test_terminal_without_lines(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor has it the letters of a name."""
    plain = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", plain)
    named = tree(3, {0: [1, 2]}, {0: ["full", "full"]}, hosts="ä,b,c", own={})
    assert status(capfd, named) == "0 \\xe4: full\n|- 1 b: full\n`- 2 c: full\n"


def test_tree_for_programs_has_ghosts_and_errors(capfd: pytest.CaptureFixture[str]) -> None:
    top = json.loads(status(capfd, DEEP, "--json"))
    lost, unasked = top["children"][0]["children"][0], top["children"][2]
    assert (lost["ghost"], lost["children"][0]["ghost"], lost["children"][0]["duration"]) == (
        False,
        True,
        None,
    )
    assert (unasked["status"], unasked["error"], unasked["duration"]) == ("full", "No route to host", None)


NAMED = tree(
    7,
    {0: [1, 2], 1: [3, 4], 2: [5, 6]},
    {0: ["degraded", "full"], 1: ["lost", "full"], 2: ["full", "full"]},
    hosts="fake[0-6]",
    own={0: "degraded", 1: "degraded"},
    dead=(2,),
)


def ask(
    capfd: pytest.CaptureFixture[str], script: Callable[[Conversation], None], *arguments: str
) -> Outcome:
    """Return what a command about the overlay prints."""
    with broker(script) as uri:
        return specwire(capfd, "flux", "overlay", *arguments, "--uri", uri)


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("0", "fake0"),
        ("0-6", "fake[0-6]"),
        ("5,1-2", "fake[1-2,5]"),
        ("fake2", "2"),
        ("fake[2-3]", "2-3"),
        ("fake6,fake0", "0,6"),
    ],
)
def test_ranks_and_hosts_are_translated(target: str, told: str, capfd: pytest.CaptureFixture[str]) -> None:
    """As flux-core's own tests have it: ranks to hosts, hosts to ranks."""
    assert ask(capfd, NAMED, "lookup", target) == Outcome(0, f"{told}\n", "")
    assert ask(capfd, NAMED, "lookup", target, "--json") == Outcome(0, f'"{told}"\n', "")


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (("lookup", "100"), 2, "100 is no rank of an instance of 7"),
        (
            ("lookup", "moon"),
            2,
            "'moon' is no host of the instance; `specwire flux getattr hostlist` lists them",
        ),
        (("lookup", "fake["), 2, "'fake[' is no list of hosts, from character 0 on"),
        (("parentof", "0"), 1, "rank 0 has no parent"),
        (("parentof", "7"), 1, "rank 7 is not in the tree"),
        (("parentof", "any"), 2, "any: a rank or a host is wanted"),
        (("disconnect", "0"), 1, "rank 0 has no parent"),
    ],
)
def test_what_is_no_rank_and_no_host(
    arguments: tuple[str, ...], status: int, sentence: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ask(capfd, NAMED, *arguments) == Outcome(status, "", f"specwire: {sentence}\n")


def test_parents(capfd: pytest.CaptureFixture[str]) -> None:
    assert ask(capfd, NAMED, "parentof", "6").out == "2\n"
    assert ask(capfd, NAMED, "parentof", "fake1").out == "0\n"
    assert ask(capfd, NAMED, "parentof", "fake1", "--json").out == "0\n"


@pytest.mark.parametrize(("options", "parent"), [((), 1), (("--parent", "0"), 0)])
def test_child_that_hangs_is_cut_off(
    options: tuple[str, ...], parent: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """The parent is asked, by the topology or as the user says."""
    asked: list[tuple[int, bytes]] = []

    def script(c: Conversation) -> None:
        with suppress(EOFError):
            while True:
                request = c.hear()
                match request[1]:
                    case b"overlay.disconnect-subtree":
                        asked.append((int.from_bytes(request[-1][-8:-4], "big"), request[2]))
                        c.reply(request)
                    case b"overlay.topology":
                        below = b'{"rank":1,"size":2,"children":[{"rank":2,"size":1,"children":[]}]}'
                        c.reply(request, payload=b'{"rank":0,"size":3,"children":[' + below + b"]}\0")
                    case _:
                        c.reply(request, payload=b'{"value":"a[0-2]"}\0')

    outcome = ask(capfd, script, "disconnect", *options, "a2")
    told = f"flux-overlay: asking a{parent} (rank {parent}) to disconnect child a2 (rank 2)\n"
    assert outcome == Outcome(0, "", told)
    assert asked == [(parent, b'{"rank":2}\0')]


def test_errors_by_their_reason(capfd: pytest.CaptureFixture[str]) -> None:
    """Of brokers that are lost, as their parents tell, and of those that do not answer."""

    def script(c: Conversation) -> None:
        def lost(rank: int) -> dict[str, Any]:
            return {"rank": rank, "status": "lost", "duration": 1.0, "error": "silent for 300 s"}

        shape = {
            "rank": 0,
            "size": 4,
            "children": [{"rank": r, "size": 1, "children": []} for r in (1, 2, 3)],
        }
        silent = {"rank": 2, "status": "full", "duration": 1.0, "torpid": True}
        children = [lost(1), silent, lost(3)]
        health = {"rank": 0, "status": "degraded", "duration": 1.0, "children": children}
        answers = {b"overlay.topology": shape, b"overlay.health": health}
        with suppress(EOFError):
            while True:
                request = c.hear()
                attributes = {"value": "4" if b"size" in request[2] else "a[0-3]"}
                told = answers.get(request[1], attributes)
                c.reply(request, payload=json.dumps(told).encode() + b"\0")

    told = "a[1,3] (rank 1,3): silent for 300 s\na2 (rank 2): torpid\n"
    assert ask(capfd, script, "errors") == Outcome(0, told, "")
    assert json.loads(ask(capfd, script, "errors", "--json").out) == {
        "silent for 300 s": [1, 3],
        "torpid": [2],
    }
    assert ask(capfd, script, "status", "--down").out == (
        "0 a0: degraded\n├─ 1 a1: lost silent for 300 s\n├─ 2 a2: full, torpid\n└─ 3 a3: lost silent for 300 s\n"
    )
    assert ask(capfd, NAMED, "errors").out == "fake2 (rank 2): No route to host\n"
