"""In which order a broker does what its engine wants."""

from __future__ import annotations

from specwire.runtime.kernel.commits import Commit
from specwire.runtime.norfab.actions import Action, Ask, Fetch, Report, Send, Stopped
from specwire.runtime.norfab.commands import Command, Disconnect, Post, Role
from specwire.runtime.norfab.events import Refused
from specwire.runtime.norfab.serve.order import MAIL_COMMANDS, Mail, sort_out


def post(number: int) -> Post:
    return Post(f"j{number}", b"{}")


def send(peer: bytes, number: int, role: Role = "worker") -> Send:
    return Send(peer, role, post(number))


def mail(peer: bytes, *numbers: int, role: Role = "worker") -> Mail:
    return Mail(peer, role, [post(number) for number in numbers])


def test_what_one_peer_is_sent_is_sent_together_and_in_order() -> None:
    sends = [send(b"w1", 1), send(b"w2", 1), send(b"w1", 2), send(b"w2", 2), send(b"w1", 3)]
    assert sort_out(sends) == ([], [], [mail(b"w1", 1, 2, 3), mail(b"w2", 1, 2)])


def test_a_worker_has_its_job_before_the_client_is_told() -> None:
    """What each of them is sent keeps its order; one name can be that of a worker and of a client."""
    sends = [send(b"x", 1, "client"), send(b"x", 1), send(b"w1", 1), send(b"x", 2, "client")]
    assert sort_out(sends) == ([], [], [mail(b"x", 1), mail(b"w1", 1), mail(b"x", 1, 2, role="client")])


def test_the_end_comes_last_and_what_is_kept_and_told_apart() -> None:
    """Nothing follows the last word."""
    goodbye: Command = Disconnect("svc")
    first, second = Commit(1, ()), Commit(2, ())
    fetch, ask, stopped = Fetch(1, "j1", "w1"), Ask(1, "svc", "task", b"[]", b"{}", ""), Stopped(False, "")
    no, never = Refused(b"c1", "no"), Refused(b"c1", "never")
    wanted: list[Action] = [
        fetch,
        Report(no),
        send(b"w1", 1),
        first,
        ask,
        Send(b"w1", "worker", goodbye),
        second,
        Report(never),
        stopped,
    ]
    works = [Mail(b"w1", "worker", [post(1), goodbye]), fetch, ask, stopped]
    assert sort_out(wanted) == ([no, never], [first, second], works)


def test_very_much_for_one_peer_lets_others_have_their_turn() -> None:
    """In several mails, between which those for others come; in its order."""
    sends = [
        send(peer, number, "client") for peer in (b"c1", b"c2") for number in range(2 * MAIL_COMMANDS + 1)
    ]
    _, _, works = sort_out([*sends, send(b"w1", 0), send(b"c3", 0, "client")])
    mails = [work for work in works if isinstance(work, Mail)]
    assert [(mail.peer, len(mail.commands)) for mail in mails] == [
        (b"w1", 1),
        *((b"c1", 512), (b"c2", 512), (b"c3", 1)),
        *((b"c1", 512), (b"c2", 512)),
        *((b"c1", 1), (b"c2", 1)),
    ]
    for peer in (b"c1", b"c2"):
        said = [command for mail in mails if mail.peer == peer for command in mail.commands]
        assert said == [one.command for one in sends if one.peer == peer]
