"""A peer's status: what its engine knows, the document that others read, and the lines in its log."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from specwire.generated.filemq import Cheezburger, Nom, Ohai, OhaiOk, Operation
from specwire.runtime.filemq.catalogue import PublicationTotals
from specwire.runtime.filemq.events import PeerOpened, Progress, ServerCounters, SubscriberCounters
from specwire.runtime.filemq.status import (
    CLIENTS_SHOWN,
    REFUSALS_KEPT,
    ClientStatus,
    PeerStatus,
    Phase,
    PublicationStatus,
    Refusal,
    Refusals,
    ServerStatus,
    SubscriberStatus,
    UnderWay,
    describe_left,
    report,
)
from specwire.runtime.kernel.log import Refused
from specwire.runtime.kernel.status import ProcessStatus
from tests.runtime.filemq.client_desk import ClientDesk
from tests.runtime.filemq.server_driver import (
    LABEL,
    RESYNC,
    ServerDriver,
    entry,
    logged,
    one_read,
    subscription,
)


def server(*clients: ClientStatus, counters: ServerCounters | None = None) -> ServerStatus:
    return ServerStatus(
        endpoint="tcp://127.0.0.1:5670",
        protocol="filemq",
        process=ProcessStatus(12, "0.1.0", "2026-01-01T00:00:00+00:00", 61.0),
        publications=(PublicationStatus("/", "/srv/a", 2, 1010),),
        clients=clients,
        counters=counters or ServerCounters(),
        refusals=(Refusal("2026-01-01T00:00:00+00:00", "/x", "is bad"),),
    )


def subscriber(
    under_way: UnderWay | None = None, counters: SubscriberCounters | None = None
) -> SubscriberStatus:
    return SubscriberStatus(
        endpoint="tcp://127.0.0.1:5670",
        protocol="filemq",
        process=ProcessStatus(13, "0.1.0", "2026-01-01T00:00:00+00:00", 61.0),
        inbox="/srv/in",
        paths=("/",),
        connection=Phase.OPEN,
        files=2,
        under_way=under_way,
        pending_octets=0,
        counters=counters or SubscriberCounters(),
        refusals=(),
    )


def client(label: str, *, under_way: UnderWay | None = None, queued: int = 0) -> ClientStatus:
    return ClientStatus(label, "", ("/",), 1000, under_way, queued, 0, 1.0)


def test_a_server_knows_how_its_clients_are() -> None:
    driver = ServerDriver(entry("/a", 1000), entry("/b", 10), chunk_octets=100, timers={})
    driver.now = 10.0
    driver.handle(Ohai(), user="ada")
    driver.now = 11.0
    effects = driver.handle(subscription("/", (RESYNC,)), Nom(credit=150), user="ada")
    driver.read(one_read(effects), b"." * 100)
    file = UnderWay("/a", 100, 1000, LABEL)
    assert driver.state.under_way() == [file]
    assert driver.peering().describe(14.0) == ClientStatus(
        LABEL, "ada", ("/",), 50, file, 1, 100, 4.0, missing=("/b",)
    )
    driver.leave()
    assert (driver.clients, driver.state.under_way()) == (0, [])


def test_a_server_logs_the_progress_of_a_file_that_takes_long() -> None:
    """Once a second, from the second look on."""
    driver = ServerDriver(entry("/a", 1000), chunk_octets=100, timers={"heartbeat": 60.0, "expiry": 60.0})
    effects = driver.handle(Ohai(), subscription("/", (RESYNC,)), Nom(credit=1000))
    for now, octets in ((1.0, 0), (1.9, None), (2.0, 100), (3.0, 200)):
        assert logged(driver.tick(now)) == ([Progress("/a", octets, 1000, 100.0, LABEL)] if octets else [])
        effects = driver.read(one_read(effects), bytes(100)) if octets is not None else effects
    assert driver.tick(3.5) == []


def test_a_client_knows_the_file_that_comes() -> None:
    desk = ClientDesk("/a", "/b/", resync=False)
    desk.start(1.0)
    desk.receive(OhaiOk(), 1.0)
    assert (desk.under_way, desk.paths) == (None, ("/a", "/b"))
    desk.receive(
        Cheezburger(
            sequence=0,
            operation=int(Operation.CREATE),
            filename="/a/x",
            offset=0,
            headers=(("size", "1000"),),
            chunk=b"." * 100,
        ),
        1.0,
    )
    assert desk.under_way == UnderWay("/a/x", 100, 1000)


def test_the_document_is_read_as_what_was_written() -> None:
    """Whoever asks tells the two kinds of peers apart by their role."""
    for status in (server(client("01", under_way=UnderWay("/a", 1, None))), subscriber(UnderWay("/a", 1, 2))):
        assert msgspec.json.decode(msgspec.json.encode(status), type=PeerStatus) == status


def test_reports() -> None:
    counters = ServerCounters(
        messages_in=1, messages_out=2000, chunks=3, content_octets=4_000_000, files=1, deletions=2
    )
    line = report(server(client("01", queued=2), client("02"), counters=counters))
    assert line == (
        "2 clients with credit for 2.0 kB and 2 changes to come; sent 1 file, withdrew 2; "
        "4.0 MB of content in 3 chunks, 1 message in and 2,000 out"
    )
    received = SubscriberCounters(
        peerings=3,
        refusals=1,
        malformed=2,
        octets_saved=5000,
        commands_in={"RTFM": 1, "OHAI": 7},
        commands_out={"WAT": 2},
    )
    assert report(subscriber(counters=received)) == (
        "open, 2 files held, 2 reconnects; received 0 files, deleted 0; 0 octets of content in 0 chunks, "
        "0 messages in and 0 out, 5.0 kB saved by resuming, 1 refusal, 2 malformed messages, "
        "2 errors sent, 1 error received"
    )


def test_what_is_left_is_told_for_each_client_up_to_a_few() -> None:
    file = UnderWay("/a\n", 1000, 2000, "01")
    left = list(
        describe_left(server(client("01", under_way=file, queued=1), client("02"), client("03", queued=5)))
    )
    assert left == [
        "left for 01: /a\\n after 1,000 of 2,000 octets and 1 change; sent when it connects again",
        "left for 03: 5 changes; sent when it connects again",
    ]
    many = [client(f"{n:02}", queued=1) for n in range(CLIENTS_SHOWN + 3)]
    assert len(list(describe_left(server(*many)))) == CLIENTS_SHOWN + 1
    assert list(describe_left(subscriber())) == []
    assert list(describe_left(subscriber(UnderWay("/a", 1000, None)))) == [
        "left: /a after 1,000 octets; the next start continues"
    ]


def test_the_newest_refusals_are_kept() -> None:
    refusals = Refusals()
    at = datetime(2026, 1, 1, tzinfo=UTC)
    refusals.note(PeerOpened("01"), at)
    for n in range(REFUSALS_KEPT + 5):
        refusals.note(Refused(f"/{n}", "is bad", "01"), at)
    assert len(refusals.newest()) == REFUSALS_KEPT
    assert refusals.newest()[-1] == Refusal(
        "2026-01-01T00:00:00+00:00", f"/{REFUSALS_KEPT + 4}", "is bad", "01"
    )


def test_totals_follow_each_change() -> None:
    totals = PublicationTotals()
    a, larger = entry("/a", 10), entry("/a", 25)
    totals.replace(None, a)
    totals.replace(None, entry("/b", 5))
    totals.replace(a, larger)
    assert (totals.files, totals.octets) == (2, 30)
    totals.replace(larger, None)
    totals.replace(None, entry("/empty/", 0))
    assert (totals.files, totals.octets) == (1, 5)
    totals.replace(entry("/empty/", 0), None)
    assert (totals.files, totals.octets) == (1, 5)
