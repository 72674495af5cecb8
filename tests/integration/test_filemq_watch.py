"""The watch over the dialog finds what it is there for, and blames who did it."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.generated.filemq import (
    Hugz,
    HugzOk,
    Icanhaz,
    IcanhazOk,
    Kthxbai,
    Nom,
    Ohai,
    OhaiOk,
    Rtfm,
    Srsly,
    Wat,
)
from specwire.runtime.filemq import FilemqClient, FilemqServer
from specwire.runtime.filemq.codec import Command
from tests.integration.filemq_watch import DialogWatch, Role

SUBSCRIPTION = Icanhaz(path="/", options=(), cache=())


def watched(role: Role, *said: tuple[str, Command | list[bytes]]) -> DialogWatch:
    watch = DialogWatch(role)
    for sender, what in said:
        frames = what if isinstance(what, list) else what.encode()
        watch.record(sender=sender, peer="it", conversation="1", frames=frames)
    return watch


@pytest.mark.parametrize(
    ("role", "said", "violations", "own"),
    [
        ("S", [("C", Ohai()), ("S", OhaiOk()), ("C", SUBSCRIPTION), ("S", IcanhazOk()), ("C", Kthxbai())], 0, 0),
        ("S", [("C", Ohai()), ("S", OhaiOk()), ("S", IcanhazOk())], 1, 1),
        ("S", [("C", Ohai()), ("S", Hugz())], 1, 1),
        ("C", [("C", Ohai()), ("C", Nom(credit=1))], 1, 1),
        ("C", [("C", Ohai()), ("S", OhaiOk()), ("C", Kthxbai()), ("C", Hugz())], 1, 1),
        ("S", [("C", Ohai()), ("S", [b"\xaa\xa3\x63"])], 1, 1),
        ("C", [("C", Ohai()), ("S", Hugz()), ("S", OhaiOk())], 1, 0),
        ("S", [("C", Ohai()), ("S", OhaiOk()), ("C", [b"\xaa\xa3\x63"]), ("S", Rtfm(reason=""))], 1, 0),
        # a client that the server does not know, or not any more
        ("S", [("C", Nom(credit=1)), ("S", Rtfm(reason=""))], 0, 0),
        ("S", [("C", Nom(credit=1)), ("S", Srsly(reason=""))], 0, 0),
        ("S", [("C", [b"\xaa\xa3\x01"]), ("S", Wat(reason=""))], 1, 0),
        ("S", [("C", Nom(credit=1)), ("S", Rtfm(reason="")), ("C", [b"\xaa\xa3\x01"]), ("S", Wat(reason=""))], 1, 0),
        ("S", [("C", Nom(credit=1)), ("S", OhaiOk())], 1, 1),
        ("S", [("C", Nom(credit=1)), ("S", Wat(reason="")), ("S", HugzOk())], 1, 1),
        ("S", [("C", Nom(credit=1)), ("S", Rtfm(reason="")), ("C", Ohai()), ("S", OhaiOk())], 0, 0),
    ],
)  # fmt: skip
def test_what_is_found(
    role: Role, said: list[tuple[str, Command | list[bytes]]], violations: int, own: int
) -> None:
    watch = watched(role, *said)
    assert (len(watch.violations), len(watch.own)) == (violations, own), watch.violations


def test_every_peer_of_ours_is_watched(filemq_dialogs: list[DialogWatch]) -> None:
    """Also one that a test makes without a tap; its watch is looked at when the test has ended."""
    FilemqServer([])
    FilemqClient("tcp://127.0.0.1:1", Path("inbox"), ["/"], protocol="libfilemq")
    assert len(filemq_dialogs) == 2
