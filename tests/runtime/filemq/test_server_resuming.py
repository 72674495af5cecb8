"""Playbooks for a server that sends the rest of a file: from which client it takes the option, and how."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.generated.filemq import Cheezburger, Icanhaz, IcanhazOk, Nom, Operation, Srsly
from specwire.runtime.filemq.catalogue import CheckPart
from specwire.runtime.filemq.codec import DIALECTS, Command
from specwire.runtime.filemq.events import FileResumed, FileSent, Subscribed
from specwire.runtime.filemq.outflow import SETTLE_S
from specwire.runtime.filemq.peering import MAX_SUBSCRIPTIONS
from specwire.runtime.filemq.resync import Beginning, read_beginning
from specwire.runtime.kernel.effects import Ask, CancelAsk, HostEffect, Log, Send
from tests.runtime.filemq import server_driver
from tests.runtime.filemq.server_driver import (
    LABEL,
    LASTING,
    PEER,
    PRUNE,
    RESYNC,
    ServerDriver,
    asked,
    content,
    entry,
    logged,
    one_check,
    one_read,
    reads,
    sent,
    subscription,
)

WHOLE = ("WHOLE", "1")
PART_SHA1 = "B" * 40
SIZE = 10


def peered(
    *names: str, path: str | None = "/p", credit: int = 1000, dialect: str = "filemq", **settings: Any
) -> ServerDriver:
    """Return a driver with these files, and a client that is subscribed to `path` and has credit."""
    files = map(entry, names)
    return server_driver.peered(
        *files, path=path, credit=credit, dialect=DIALECTS[dialect], timers=LASTING, **settings
    )


def rest(name: str = "/p/large", value: str = f"6:{PART_SHA1}", *options: tuple[str, str]) -> Icanhaz:
    """Return the request for the rest of a file."""
    return Icanhaz(path=name, options=(("RESUME", value), *options), cache=())


def resync(path: str = "/p", *cache: tuple[str, str]) -> Icanhaz:
    """Return the request for everything that the cache lacks."""
    return Icanhaz(path=path, options=(RESYNC, PRUNE), cache=cache)


def checked(driver: ServerDriver, effects: Iterable[HostEffect], sha1: str = PART_SHA1) -> list[HostEffect]:
    """Answer the only check with a digest."""
    return driver.check(one_check(effects), sha1)


def play_out(driver: ServerDriver, effects: Iterable[HostEffect]) -> list[tuple[str, int]]:
    """Answer everything, each check with the digest of the part; return the chunks that are sent."""
    played = driver.play_out(effects, digest=lambda request: PART_SHA1)
    return [(command.filename, command.offset) for command in content(played) if command.chunk]


# ---- the rest


def test_rest_is_sent_from_its_offset() -> None:
    """The file begins like the client's part: the first chunk has the offset that was asked for."""
    driver = peered("/p/large")
    effects = driver.handle(rest())
    assert sent(effects) == [IcanhazOk()]
    assert one_check(effects).request == CheckPart(entry("/p/large"), 6)
    resumed = checked(driver, effects)
    assert logged(resumed) == [FileResumed("/p/large", 6, LABEL)]
    assert reads(resumed) == [("/p/large", 6, 4)]
    headers = (("size", "10"), ("sha-1", "AA"))
    create = int(Operation.CREATE)
    assert sent(driver.read(one_read(resumed), b"6789")) == [
        Cheezburger(0, create, "/p/large", 6, headers, b"6789"),
        Cheezburger(1, create, "/p/large", 10, headers, b""),
    ]
    assert driver.credit() == 996


def test_file_that_begins_otherwise_is_sent_whole() -> None:
    """It was changed, or the client's part was."""
    driver = peered("/p/large")
    effects = checked(driver, driver.handle(rest()), "C" * 40)
    assert (reads(effects), logged(effects)) == ([("/p/large", 0, 10)], [])


def test_nothing_may_be_left() -> None:
    """The client holds the whole file, but not in its place: only the end of the file is sent."""
    driver = peered("/p/large")
    effects = checked(driver, driver.handle(rest(value=f"{SIZE}:{PART_SHA1}")))
    assert [(command.offset, command.chunk) for command in content(effects)] == [(SIZE, b"")]
    assert FileSent("/p/large", SIZE, LABEL) in logged(effects)


def test_digest_is_compared_without_regard_to_case() -> None:
    """Hexadecimal digits may have either case."""
    driver = peered("/p/large")
    effects = checked(driver, driver.handle(rest(value=f"6:{PART_SHA1.lower()}")))
    assert reads(effects) == [("/p/large", 6, 4)]


def test_part_longer_than_the_file_is_not_checked() -> None:
    """It cannot be the beginning of this file."""
    effects = peered("/p/large").handle(rest(value=f"{SIZE + 1}:{PART_SHA1}"))
    assert reads(effects) == [("/p/large", 0, SIZE)]
    assert asked(effects, CheckPart) == []


def test_rest_is_sent_before_everything_else() -> None:
    """Any other file that begins at the client replaces the unfinished one."""
    driver = peered("/p/a", "/p/large", "/p/z")
    effects = driver.handle(rest(), resync())
    assert play_out(driver, effects) == [("/p/large", 6), ("/p/a", 0), ("/p/z", 0)]


def test_resync_after_the_rest_does_not_send_the_file_again() -> None:
    """The cache was filled before the rest came."""
    driver = peered("/p/large")
    assert play_out(driver, driver.handle(rest())) == [("/p/large", 6)]
    assert play_out(driver, driver.handle(resync())) == []


def test_second_resync_sends_what_could_not_be_stored() -> None:
    """A client that could not complete its file asks once more."""
    driver = peered("/p/large")
    play_out(driver, driver.handle(rest(), resync()))
    assert play_out(driver, driver.handle(resync())) == [("/p/large", 0)]


def test_file_that_changes_after_the_rest_is_sent_whole() -> None:
    """The subscription covers it as before."""
    driver = peered("/p/large")
    play_out(driver, driver.handle(rest()))
    assert play_out(driver, driver.publish(entry("/p/large", sha1="CC"))) == [("/p/large", 0)]


def test_file_that_changes_while_it_is_checked_is_sent_whole() -> None:
    """The digest of the old version says nothing about the new one."""
    driver = peered("/p/large")
    effects = driver.handle(rest())
    assert reads(driver.publish(entry("/p/large", sha1="CC"))) == []
    again = checked(driver, effects)
    assert (reads(again), logged(again)) == ([("/p/large", 0, SIZE)], [])


def test_file_that_is_withdrawn_while_it_is_checked_is_deleted() -> None:
    """Nothing of it is sent."""
    driver = peered("/p/large")
    effects = driver.handle(rest())
    assert sent(driver.withdraw("/p/large")) == []
    [deletion] = content(checked(driver, effects))
    assert (deletion.filename, deletion.operation) == ("/p/large", Operation.DELETE)


def test_file_that_cannot_be_checked_is_sent_whole_later() -> None:
    """The reader has found another file than the list of files says."""
    driver = peered("/p/large")
    effects = driver.handle(rest())
    assert driver.fail(one_check(effects)) == []
    assert reads(driver.tick(SETTLE_S)) == [("/p/large", 0, SIZE)]


def test_file_that_was_published_again_when_it_was_checked_is_sent_whole_at_once() -> None:
    """The reader has updated the list of files before it answers."""
    driver = peered("/p/large")
    effects = driver.handle(rest())
    driver.publish(entry("/p/large", sha1="CC"))
    assert reads(driver.fail(one_check(effects))) == [("/p/large", 0, SIZE)]


def test_nothing_is_sent_while_a_part_is_checked() -> None:
    """Neither this file, nor another that would replace the client's part."""
    driver = peered("/p/large", "/p/a")
    effects = driver.handle(rest())
    assert driver.handle(Nom(credit=5)) == []
    assert driver.handle(resync()) == [Send(PEER, IcanhazOk())]
    assert reads(checked(driver, effects)) == [("/p/large", 6, 4)]


def test_client_that_leaves_ends_the_check() -> None:
    """Computing goes no further, and a late digest has no effect."""
    driver = peered("/p/large")
    request = one_check(driver.handle(rest()))
    assert CancelAsk(request.ticket) in driver.leave()
    assert driver.check(request, PART_SHA1) == []
    assert driver.suspended == 0


def test_rest_waits_for_credit() -> None:
    """Exact to the octet, as always."""
    driver = peered("/p/large", credit=0)
    assert reads(checked(driver, driver.handle(rest()))) == []
    assert reads(driver.handle(Nom(credit=3))) == [("/p/large", 6, 3)]


# ---- the option


def test_request_is_no_subscription() -> None:
    """It is neither logged nor counted: a client with all the subscriptions it may have can resume a file."""
    driver = peered("/p/large")
    for number in range(MAX_SUBSCRIPTIONS - 1):
        driver.handle(subscription(f"/{number}"))
    effects = driver.handle(rest())
    assert sent(effects) == [IcanhazOk()]
    assert logged(effects) == []


def test_request_is_not_judged_if_the_path_was_accepted() -> None:
    """A client that may have the path may have the file."""
    judged: list[str] = []

    def authorise(user: str, path: str) -> str | None:
        judged.append(path)
        return None if path == "/p" else "is not for you"

    driver = peered("/p/large", authorise=authorise)
    assert reads(checked(driver, driver.handle(rest()))) == [("/p/large", 6, 4)]
    assert judged == ["/p"]


def test_request_without_a_subscription_is_one() -> None:
    """The option is ignored, and allows a client nothing that it may not have."""
    driver = peered("/p/large", path=None, authorise=lambda user, path: "is not for you")
    [answer] = sent(driver.handle(rest()))
    assert isinstance(answer, Srsly)
    driver = peered("/p/large", path="/q")
    effects = driver.handle(rest())
    assert sent(effects) == [IcanhazOk()]
    assert logged(effects) == [Subscribed("/p/large", LABEL)]
    assert not any(isinstance(effect, Ask) for effect in effects)


def test_faulty_name_below_a_path_is_refused_as_always() -> None:
    """With SRSLY."""
    [answer] = sent(peered("/p/large").handle(rest("/p/../secret", f"6:{PART_SHA1}", PRUNE)))
    assert isinstance(answer, Srsly)


def test_second_request_of_a_client_is_a_subscription_like_any_other() -> None:
    """A client needs one, and cannot have the server compute more."""
    driver = peered("/p/large", "/p/a")
    checked(driver, driver.handle(rest()))
    effects = driver.handle(rest("/p/a"))
    assert logged(effects) == [Subscribed("/p/a", LABEL)]
    assert asked(effects, CheckPart) == []


@pytest.mark.parametrize(("options", "deleted"), [((PRUNE,), ["/p/gone"]), ((), [])])
def test_file_that_is_not_published_any_more(
    options: tuple[tuple[str, str], ...], deleted: list[str]
) -> None:
    """Its deletion is sent if the client asks for it."""
    commands = content(peered("/p/large").handle(rest("/p/gone", f"6:{PART_SHA1}", *options)))
    assert [c.filename for c in commands if c.operation == Operation.DELETE] == deleted
    assert len(commands) == len(deleted)


def test_client_that_writes_in_place_gets_the_whole_file() -> None:
    """It has written its part into the file itself, at whatever offset."""
    driver = peered("/p/large", dialect="libfilemq", credit=0)
    effects = driver.handle(rest(), Nom(credit=1000))
    assert asked(effects, CheckPart) == []
    assert play_out(driver, effects) == [("/p/large", 0)]


MALFORMED = [
    "", ":", "6", "6:", f":{PART_SHA1}", f"0:{PART_SHA1}", f"-6:{PART_SHA1}", f"+6:{PART_SHA1}", f" 6:{PART_SHA1}",
    f"06:{PART_SHA1}", f"6 :{PART_SHA1}", f"6:{PART_SHA1}A", f"6:{PART_SHA1[:-1]}", f"6:{PART_SHA1}\n",
    f"6:{'G' * 40}", f"{'9' * 20}:{PART_SHA1}", f"{'9' * 200}:{PART_SHA1}", f"6.0:{PART_SHA1}", f"6e3:{PART_SHA1}",
    f"٦:{PART_SHA1}", f"1_0:{PART_SHA1}",
]  # fmt: skip


@pytest.mark.parametrize("value", MALFORMED)
def test_malformed_value_is_ignored(value: str) -> None:
    """It is an option like any other that a server does not know: the command is a subscription."""
    effects = peered("/p/large").handle(rest(value=value))
    assert effects == [Send(PEER, IcanhazOk()), Log(Subscribed("/p/large", LABEL))]


@given(st.text(max_size=60) | st.from_regex(r"[0-9]{1,25}:[0-9a-fA-F]{38,42}", fullmatch=True))
def test_value_is_well_formed_or_none(value: str) -> None:
    """There is no exception, and no number that does not fit a file's size."""
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
    driver = peered("/p/large", "/p/a", credit=0, dialect=dialect)
    proved: set[tuple[str, int]] = set()
    digests = iter(answers)

    def digest(request: CheckPart) -> str | None:
        assert 0 < request.size <= SIZE
        sha1 = next(digests)
        if sha1 == PART_SHA1:
            proved.add((request.entry.name, request.size))
        return sha1

    under_way: tuple[str, int] | None = None
    for now, command in enumerate(story, start=1):
        effects = driver.play_out(driver.handle(command), digest=digest)
        effects += driver.play_out(driver.tick(float(now)), digest=digest)  # a delay is over
        for chunk in content(effects):
            if chunk.operation == Operation.CREATE:
                here = (chunk.filename, chunk.offset)
                if under_way is None:
                    assert chunk.offset == 0 or here in proved
                else:
                    assert here == under_way
                is_end = not chunk.chunk
                under_way = None if is_end else (here[0], here[1] + len(chunk.chunk))
                assert not is_end or chunk.offset == SIZE
