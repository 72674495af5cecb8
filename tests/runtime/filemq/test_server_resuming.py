"""Playbooks for the server that sends the rest of a file: from whom it takes the option, and what it makes of it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.generated.filemq import Cheezburger, Icanhaz, IcanhazOk, Nom, Ohai, Operation, Srsly
from specwire.runtime.filemq.actions import Abandon, CheckPart, Pause, ReadChunk, Report, Send, ServerAction
from specwire.runtime.filemq.catalogue import Catalogue, Entry, Signature
from specwire.runtime.filemq.dialect import Command
from specwire.runtime.filemq.dialects import DIALECTS
from specwire.runtime.filemq.events import FileResumed, FileSent, Subscribed
from specwire.runtime.filemq.peering import MAX_SUBSCRIPTIONS
from specwire.runtime.filemq.resync import Beginning, read_beginning
from specwire.runtime.filemq.server import ServerEngine

PEER = b"\x00peer"
TIMES = {"heartbeat": 1.0, "expiry": 1e9}
RESYNC = ("RESYNC", "1")
PRUNE = ("PRUNE", "1")
WHOLE = ("WHOLE", "1")
PART_SHA1 = "B" * 40
SIZE = 10


def entry(name: str, size: int = SIZE, sha1: str = "AA") -> Entry:
    return Entry(name, size, sha1, Signature(size, 0, 0))


def peered(
    *names: str, path: str | None = "/p", credit: int = 1000, dialect: str = "filemq", **terms: object
) -> ServerEngine:
    """Return an engine with one client that is subscribed to `path` and has credit."""
    files = Catalogue()
    for name in names:
        files.put(entry(name))
    engine = ServerEngine(files, timers=TIMES, dialect=DIALECTS[dialect], **terms)  # type: ignore[arg-type]
    engine.obey(PEER, Ohai(), 0.0)
    if path is not None:
        engine.obey(PEER, Icanhaz(path=path, options=(), cache=()), 0.0)
    engine.obey(PEER, Nom(credit=credit), 0.0)
    return engine


def rest(name: str = "/p/large", value: str = f"6:{PART_SHA1}", *options: tuple[str, str]) -> Icanhaz:
    return Icanhaz(path=name, options=(("RESUME", value), *options), cache=())


def resync(path: str = "/p", *cache: tuple[str, str]) -> Icanhaz:
    return Icanhaz(path=path, options=(RESYNC, PRUNE), cache=cache)


def ask(engine: ServerEngine, command: Command) -> list[ServerAction]:
    return engine.obey(PEER, command, 0.0)


def sent(actions: Iterable[ServerAction]) -> list[Command]:
    return [action.command for action in actions if isinstance(action, Send)]


def check_of(actions: Iterable[ServerAction]) -> CheckPart:
    [check] = [action for action in actions if isinstance(action, CheckPart)]
    return check


def checked(
    engine: ServerEngine, actions: Iterable[ServerAction], sha1: str = PART_SHA1
) -> list[ServerAction]:
    return engine.part_checked(PEER, check_of(actions).transfer, sha1, 0.0)


def reads(actions: Iterable[ServerAction]) -> list[tuple[str, int, int]]:
    return [(a.name, a.offset, a.size) for a in actions if isinstance(a, ReadChunk)]


def play_out(engine: ServerEngine, actions: list[ServerAction]) -> list[tuple[int, str, int, bytes]]:
    """Perform everything until nothing is left; return the content that was sent."""
    seen: list[tuple[int, str, int, bytes]] = []
    waiting = list(actions)
    while waiting:
        action = waiting.pop(0)
        match action:
            case Send(command=Cheezburger() as command):
                seen.append((command.operation, command.filename, command.offset, bytes(command.chunk)))
            case ReadChunk(peer=peer, transfer=transfer, size=size):
                waiting += engine.chunk_read(peer, transfer, b"x" * size, 0.0)
            case CheckPart(peer=peer, transfer=transfer):
                waiting += engine.part_checked(peer, transfer, PART_SHA1, 0.0)
            case Pause(peer=peer):
                waiting += engine.resume(peer, 0.0)
    return seen


# ---- the rest


def test_rest_is_sent_from_its_offset() -> None:
    """The file begins as what the client holds: the first chunk has the offset that was asked for."""
    engine = peered("/p/large")
    asked = ask(engine, rest())
    assert sent(asked) == [IcanhazOk()]
    assert check_of(asked) == CheckPart(PEER, 0, "/p/large", 6)
    going_on = checked(engine, asked)
    assert going_on == [
        Report(FileResumed("/p/large", 6, PEER.hex())), ReadChunk(PEER, 0, "/p/large", 6, 4)
    ]  # fmt: skip
    actions = engine.chunk_read(PEER, 0, b"6789", 0.0)
    headers = (("size", "10"), ("sha-1", "AA"))
    create = int(Operation.CREATE)
    assert sent(actions) == [
        Cheezburger(0, create, "/p/large", 6, headers, b"6789"), Cheezburger(1, create, "/p/large", 10, headers, b"")
    ]  # fmt: skip
    assert engine.credit(PEER) == 996


def test_file_that_begins_otherwise_is_sent_whole() -> None:
    """It was changed, or what the client holds was."""
    engine = peered("/p/large")
    assert checked(engine, ask(engine, rest()), "C" * 40) == [ReadChunk(PEER, 0, "/p/large", 0, 10)]


def test_nothing_may_be_left() -> None:
    """All is there, and not in its place: the end of the file is told."""
    engine = peered("/p/large")
    actions = checked(engine, ask(engine, rest(value=f"{SIZE}:{PART_SHA1}")))
    assert [(c.offset, c.chunk) for c in sent(actions) if isinstance(c, Cheezburger)] == [(SIZE, b"")]
    assert Report(FileSent("/p/large", SIZE, PEER.hex())) in actions


def test_digest_is_compared_without_regard_to_case() -> None:
    engine = peered("/p/large")
    assert reads(checked(engine, ask(engine, rest(value=f"6:{PART_SHA1.lower()}")))) == [("/p/large", 6, 4)]


def test_part_longer_than_the_file_is_not_looked_at() -> None:
    """It cannot be the beginning of this file."""
    actions = ask(peered("/p/large"), rest(value=f"{SIZE + 1}:{PART_SHA1}"))
    assert reads(actions) == [("/p/large", 0, SIZE)]
    assert not any(isinstance(action, CheckPart) for action in actions)


def test_rest_is_sent_before_everything_else() -> None:
    """What else begins at the client takes the place of the unfinished file."""
    engine = peered("/p/a", "/p/large", "/p/z")
    actions = [*ask(engine, rest()), *ask(engine, resync())]
    names = [(name, offset) for _, name, offset, chunk in play_out(engine, actions) if chunk]
    assert names == [("/p/large", 6), ("/p/a", 0), ("/p/z", 0)]


def test_resync_after_the_rest_does_not_send_the_file_again() -> None:
    """The cache was filled before the rest came."""
    engine = peered("/p/large")
    assert len(play_out(engine, ask(engine, rest()))) == 2
    assert play_out(engine, ask(engine, resync())) == []


def test_second_resync_sends_what_could_not_be_stored() -> None:
    """A client whose file did not come to a good end asks once more."""
    engine = peered("/p/large")
    play_out(engine, [*ask(engine, rest()), *ask(engine, resync())])
    assert [offset for _, _, offset, chunk in play_out(engine, ask(engine, resync())) if chunk] == [0]


def test_file_that_changes_after_the_rest_is_sent_whole() -> None:
    """It is subscribed to as before."""
    engine = peered("/p/large")
    play_out(engine, ask(engine, rest()))
    files = engine._files
    assert isinstance(files, Catalogue)
    files.put(entry("/p/large", sha1="CC"))
    actions = engine.publish(entry("/p/large", sha1="CC"), 0.0, replaces=True)
    assert [offset for _, _, offset, chunk in play_out(engine, actions) if chunk] == [0]


def test_file_that_changes_while_it_is_checked_is_sent_whole() -> None:
    """What was found out of the old version says nothing of the new one."""
    engine = peered("/p/large")
    asked = ask(engine, rest())
    files = engine._files
    assert isinstance(files, Catalogue)
    files.put(entry("/p/large", sha1="CC"))
    actions = engine.publish(entry("/p/large", sha1="CC"), 0.0, replaces=True)
    assert actions == [Abandon(PEER, 0), ReadChunk(PEER, 1, "/p/large", 0, SIZE)]
    assert checked(engine, asked) == []


def test_file_that_moved_while_it_was_checked_is_sent_whole() -> None:
    """The shell found it to be another than the listing said."""
    engine = peered("/p/large")
    asked = ask(engine, rest())
    actions = engine.file_moved(PEER, check_of(asked).transfer, 0.0)
    assert reads(actions) == [("/p/large", 0, SIZE)]


def test_nothing_is_sent_while_a_part_is_checked() -> None:
    """Neither this file, nor another that would take its place."""
    engine = peered("/p/large", "/p/a")
    asked = ask(engine, rest())
    assert [a for a in ask(engine, Nom(credit=5)) if isinstance(a, Send | ReadChunk)] == []
    assert sent(ask(engine, resync())) == [IcanhazOk()]
    assert reads(checked(engine, asked)) == [("/p/large", 6, 4)]


def test_client_that_leaves_ends_the_check() -> None:
    engine = peered("/p/large")
    asked = ask(engine, rest())
    assert Abandon(PEER, check_of(asked).transfer) in engine.gone(PEER, "cut")
    assert checked(engine, asked) == []


def test_rest_waits_for_credit() -> None:
    """Exact to the octet, as always."""
    engine = peered("/p/large", credit=0)
    assert reads(checked(engine, ask(engine, rest()))) == []
    assert reads(ask(engine, Nom(credit=3))) == [("/p/large", 6, 3)]


# ---- the option


def test_request_is_no_subscription() -> None:
    """Neither reported nor counted: a client with as many as are allowed may go on with a file."""
    engine = peered("/p/large")
    for number in range(MAX_SUBSCRIPTIONS - 1):
        ask(engine, Icanhaz(path=f"/{number}", options=(), cache=()))
    actions = ask(engine, rest())
    assert sent(actions) == [IcanhazOk()]
    assert not any(isinstance(action, Report) for action in actions)


def test_request_is_not_judged_where_the_path_was_accepted() -> None:
    """Whoever may have the path may have the file."""
    judged: list[str] = []

    def authorise(user: str, path: str) -> str | None:
        judged.append(path)
        return None if path == "/p" else "is not for you"

    engine = peered("/p/large", authorise=authorise)
    assert reads(checked(engine, ask(engine, rest()))) == [("/p/large", 6, 4)]
    assert judged == ["/p"]


def test_request_without_a_subscription_is_one() -> None:
    """An unknown option is passed over, and what a client may not have it does not get by this one."""
    engine = peered("/p/large", path=None, authorise=lambda user, path: "is not for you")
    [answer] = sent(ask(engine, rest()))
    assert isinstance(answer, Srsly)
    engine = peered("/p/large", path="/q")
    actions = ask(engine, rest())
    assert sent(actions) == [IcanhazOk()]
    assert Report(Subscribed("/p/large", PEER.hex())) in actions
    assert not any(isinstance(action, CheckPart | ReadChunk) for action in actions)


def test_faulty_name_below_a_path_is_refused_as_always() -> None:
    [answer] = sent(ask(peered("/p/large"), rest("/p/../secret", f"6:{PART_SHA1}", PRUNE)))
    assert isinstance(answer, Srsly)


def test_second_request_of_a_client_is_a_subscription_like_any_other() -> None:
    """One is enough for a client, and so much is all that it can have us do."""
    engine = peered("/p/large", "/p/a")
    checked(engine, ask(engine, rest()))
    actions = ask(engine, rest("/p/a"))
    assert Report(Subscribed("/p/a", PEER.hex())) in actions
    assert not any(isinstance(action, CheckPart) for action in actions)


@pytest.mark.parametrize(("options", "deleted"), [((PRUNE,), ["/p/gone"]), ((), [])])
def test_file_that_is_not_published_any_more(
    options: tuple[tuple[str, str], ...], deleted: list[str]
) -> None:
    """Told where the client asks for it."""
    actions = ask(peered("/p/large"), rest("/p/gone", f"6:{PART_SHA1}", *options))
    content = [c for c in sent(actions) if isinstance(c, Cheezburger)]
    assert [c.filename for c in content if c.operation == Operation.DELETE] == deleted
    assert len(content) == len(deleted)


def test_client_that_writes_in_place_gets_the_whole_file() -> None:
    """What it holds of a file it has written into the file itself, at whatever offset."""
    engine = peered("/p/large", dialect="libfilemq")
    actions = ask(engine, rest())
    assert not any(isinstance(action, CheckPart) for action in actions)
    assert [offset for _, _, offset, chunk in play_out(engine, actions) if chunk] in ([], [0])


MALFORMED = [
    "", ":", "6", "6:", f":{PART_SHA1}", f"0:{PART_SHA1}", f"-6:{PART_SHA1}", f"+6:{PART_SHA1}", f" 6:{PART_SHA1}",
    f"06:{PART_SHA1}", f"6 :{PART_SHA1}", f"6:{PART_SHA1}A", f"6:{PART_SHA1[:-1]}", f"6:{PART_SHA1}\n",
    f"6:{'G' * 40}", f"{'9' * 20}:{PART_SHA1}", f"{'9' * 200}:{PART_SHA1}", f"6.0:{PART_SHA1}", f"6e3:{PART_SHA1}",
    f"٦:{PART_SHA1}", f"1_0:{PART_SHA1}",
]  # fmt: skip


@pytest.mark.parametrize("value", MALFORMED)
def test_malformed_value_is_passed_over(value: str) -> None:
    """It is an option like any other that a server does not know: the command is a subscription."""
    engine = peered("/p/large")
    actions = ask(engine, rest(value=value))
    assert actions == [Send(IcanhazOk(), PEER), Report(Subscribed("/p/large", PEER.hex()))]


@given(st.text(max_size=60) | st.from_regex(r"[0-9]{1,25}:[0-9a-fA-F]{38,42}", fullmatch=True))
def test_value_is_well_formed_or_none(value: str) -> None:
    """Never another exception, and never a number that does not fit a file's size."""
    beginning = read_beginning((("RESUME", value),))
    if beginning is not None:
        assert beginning == Beginning(int(value.partition(":")[0]), value.partition(":")[2].upper())
        assert 0 < beginning.size < 2**64


values = st.one_of(
    st.sampled_from(MALFORMED),
    st.integers(1, 10**19).map(lambda size: f"{size}:{PART_SHA1}"),
    st.integers(1, SIZE).map(lambda size: f"{size}:{PART_SHA1}"),
)
commands = st.one_of(
    st.builds(
        rest,
        st.sampled_from(["/p/large", "/p/a", "/p/gone", "/p", "/", "/q", "/p/../x"]),
        values,
        st.just(PRUNE),
    ),
    st.sampled_from(
        [resync(), resync("/"), resync("/p", ("a", "AA")), Nom(credit=3), Nom(credit=100), WHOLE]
    ).map(lambda item: Icanhaz(path="/p", options=(WHOLE,), cache=()) if item == WHOLE else item),
)


@settings(deadline=None)
@given(
    story=st.lists(commands, max_size=12),
    answers=st.lists(st.sampled_from([PART_SHA1, "C" * 40, None]), min_size=12),
    dialect=st.sampled_from(sorted(DIALECTS)),
)
def test_whatever_is_asked_every_file_is_sent_in_one_piece(
    story: list[Command], answers: list[str | None], dialect: str
) -> None:
    """Chunks follow each other from an offset that was asked for and proved, or from 0, to the end."""
    engine = peered("/p/large", "/p/a", credit=0, dialect=dialect)
    proved: set[tuple[str, int]] = set()
    under_way: tuple[str, int] | None = None
    turns = iter(answers)
    for command in story:
        waiting = ask(engine, command)
        while waiting:
            action = waiting.pop(0)
            match action:
                case CheckPart(name=name, transfer=transfer, size=size):
                    assert 0 < size <= SIZE
                    sha1 = next(turns)
                    if sha1 == PART_SHA1:
                        proved.add((name, size))
                    waiting += (
                        engine.file_moved(PEER, transfer, 0.0)
                        if sha1 is None
                        else engine.part_checked(PEER, transfer, sha1, 0.0)
                    )
                case ReadChunk(transfer=transfer, size=size):
                    waiting += engine.chunk_read(PEER, transfer, b"x" * size, 0.0)
                case Pause():
                    waiting += engine.resume(PEER, 0.0)
                case Send(command=Cheezburger() as sent_chunk) if sent_chunk.operation == Operation.CREATE:
                    here = (sent_chunk.filename, sent_chunk.offset)
                    if under_way is None:
                        assert sent_chunk.offset == 0 or here in proved
                    else:
                        assert here == under_way
                    over = not sent_chunk.chunk
                    under_way = None if over else (here[0], here[1] + len(sent_chunk.chunk))
                    assert not over or sent_chunk.offset == SIZE
