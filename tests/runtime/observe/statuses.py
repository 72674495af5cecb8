"""Status documents with a value in every place, written by hand; the tests of metrics and pages read them."""

from __future__ import annotations

import msgspec

from specwire.runtime.bridge.bridging import Bridged
from specwire.runtime.capture.counts import TapCounts
from specwire.runtime.capture.proxy import Proxied
from specwire.runtime.filemq.events import ServerCounters, SubscriberCounters
from specwire.runtime.filemq.status import (
    ClientStatus,
    Phase,
    PublicationStatus,
    ServerStatus,
    SubscriberStatus,
    UnderWay,
)
from specwire.runtime.filemq.status import Refusal as FilemqRefusal
from specwire.runtime.flux.counters import Counters as FluxCounters
from specwire.runtime.flux.status import BrokerStatus as FluxStatus
from specwire.runtime.flux.status import ChildStatus, LocalStatus
from specwire.runtime.kernel.status import HostCounters, HostStatus, ProcessStatus
from specwire.runtime.norfab.durations import Durations
from specwire.runtime.norfab.serve.counters import Counters as NorfabCounters
from specwire.runtime.norfab.serve.status import BrokerStatus, JobsStatus, Refusal, ServiceStatus
from specwire.runtime.norfab.serve.status import WorkerStatus as RegisteredWorker
from specwire.runtime.norfab.worker.status import AssignedStatus, WorkerCounters, WorkerStatus
from specwire.runtime.transport.relay import Passage, Relay, Watcher
from specwire.runtime.zre.peer import RemoteStatus, ZreStatus

PROCESS = ProcessStatus(pid=42, version="1.2.3", started="2026-01-02T03:04:05+00:00", uptime_s=61.5)
TAPS = (TapCounts("tap-1", 10, 8, 2),)


def took(*seconds: float) -> Durations:
    """Return the durations of jobs that took so long."""
    durations = Durations()
    for one in seconds:
        durations.note(one)
    return durations


FILEMQ_COUNTERS = ServerCounters(
    messages_in=7,
    messages_out=30,
    octets_in=700,
    octets_out=3000,
    chunks=12,
    content_octets=2500,
    files=5,
    deletions=1,
    refusals=2,
    malformed=1,
    peerings=3,
    resyncs=2,
    resumed=1,
    octets_saved=900,
    commands_in={"OHAI": 3, "NOM": 4},
    commands_out={"CHEEZBURGER": 25},
)

FILEMQ_SERVER = ServerStatus(
    endpoint="tcp://127.0.0.1:5670",
    protocol="filemq",
    process=PROCESS,
    publications=(
        PublicationStatus("/docs", "/srv/docs", 40, 4000),
        PublicationStatus("/data", "/srv/data", 2, 9000),
    ),
    clients=(
        ClientStatus(
            "aabb", "ann", ("/docs",), 100, UnderWay("/docs/a", 25, 100, "aabb", 50.0), 3, 1000, 12.0
        ),
        ClientStatus("ccdd", "", ("/",), 50, None, 4, 1500, 2.0),
    ),
    counters=FILEMQ_COUNTERS,
    refusals=(FilemqRefusal("2026-01-02T03:04:06+00:00", "/../x", "leaves the folder", "aabb"),),
    captures=TAPS,
)

FILEMQ_SUBSCRIBER = SubscriberStatus(
    endpoint="tcp://127.0.0.1:5670",
    protocol="filemq",
    process=PROCESS,
    inbox="/srv/inbox",
    paths=("/docs", "/data"),
    connection=Phase.OPEN,
    files=6,
    under_way=UnderWay("/docs/a", 30, 120, "", 10.0),
    pending_octets=11,
    counters=SubscriberCounters(**msgspec.structs.asdict(FILEMQ_COUNTERS)),
    refusals=(),
    captures=(),
)

FLUX = FluxStatus(
    rank=1,
    size=7,
    fanout=2,
    uuid="11111111-aaaa",
    pid=42,
    protocol="flux",
    uri="local:///run/local-1",
    endpoint="ipc:///run/tree/1",
    phase="online",
    subtree="degraded",
    parent="00000000-aaaa",
    pending_upward=3,
    sequence=99,
    up_s=60.5,
    children=(
        ChildStatus(3, "33333333-aaaa", "node3", "full", False, True, 0.5, 2),
        ChildStatus(4, "44444444-aaaa", "node4", "lost", True, False, 70.0, 0),
    ),
    services=("attr", "kvs"),
    local=LocalStatus(2, 5, 1, 3, 4, 100, 90),
    counters=FluxCounters(
        requests=10, responses=9, events=8, unreachable=1, dropped=2, malformed=3, event_gaps=4
    ),
    captures=TAPS,
)

NORFAB_BROKER = BrokerStatus(
    endpoints=("tcp://127.0.0.1:5555",),
    back=("tcp://127.0.0.1:5556",),
    folder="/srv/norfab",
    durability="full",
    pid=42,
    version="1.2.3",
    started="2026-01-02T03:04:05+00:00",
    up_s=3.5,
    descriptors=1024,
    workers=(
        RegisteredWorker("w1", "lab", 3, 1, 2, 10.0, 0.5),
        RegisteredWorker("w2", "lab", 1, 0, 0, 11.0, 0.6),
    ),
    services=(ServiceStatus("lab", 2, 0), ServiceStatus("edge", 0, 6)),
    clients=4,
    jobs=JobsStatus(open=9, open_octets=90, kept=5, kept_octets=50, waiting_for_disk=1),
    counters=NorfabCounters(
        messages_in=1,
        messages_out=2,
        octets_in=3,
        octets_out=4,
        jobs_accepted=5,
        parts_ended=6,
        parts_failed=7,
        redispatched=8,
        workers_ready=9,
        workers_gone=10,
        refusals=11,
        turned_away=12,
        store_failures=0,
        undelivered=14,
        dropped={"late": 15},
    ),
    refusals=(Refusal("2026-01-02T03:04:06+00:00", "not yours"),),
    captures=(),
    durations={"lab": took(0.01, 0.02, 40.0, 9000.0)},
)

NORFAB_WORKER = WorkerStatus(
    name="w1",
    service="lab",
    pid=42,
    version="1.2.3",
    up_s=8.5,
    broker="tcp://127.0.0.1:5555",
    registered_s=7.5,
    stopping=False,
    concurrency=2,
    running=1,
    waiting=3,
    held=4,
    abandoned=5,
    kept=6,
    kept_octets=600,
    waiting_for_disk=1,
    resources=2,
    newest=(AssignedStatus("u-1", "nap", "client", "running", 1.5, ""),),
    counters=WorkerCounters(
        completed=20, failed=2, registrations=3, keepalives_in=30, keepalives_out=31, dropped=1
    ),
    captures=(),
    durations={"nap": took(0.3)},
)


ZRE = ZreStatus(
    name="ann",
    uuid="11" * 16,
    endpoint="tcp://127.0.0.1:5670",
    groups=("chat", "lab"),
    dialing=("tcp://127.0.0.1:5671",),
    peers=(
        RemoteStatus("bob", "22" * 16, "tcp://127.0.0.1:5672", ("chat",), {"role": "gateway"}, 0.5),
        RemoteStatus("cid", "33" * 16, "tcp://127.0.0.1:5673", (), {}, 4.5),
    ),
    host=HostStatus(
        process=PROCESS,
        endpoints={"mailbox": "tcp://127.0.0.1:5670"},
        paused=False,
        connections=3,
        pending_effects=4,
        messages_in=20,
        messages_out=30,
        octets_in=2000,
        octets_out=3000,
        counters=HostCounters(malformed=1, refused=2, cut_off=3, lost=4, faults=5),
        captures=TAPS,
    ),
)


def _watch(passage: Passage) -> Watcher:
    raise AssertionError("nobody connects")


RELAY = Relay("tcp://127.0.0.1:5671", "tcp://127.0.0.1:5670", _watch)
RELAY.connections, RELAY.refused = 7, 2

PROXIED = Proxied()
PROXIED.messages.update({"C": 4, "S": 6})
PROXIED.unread.update({"CURVE": 1})
PROXIED.octets = 500

BRIDGED = Bridged()
BRIDGED.to_listener, BRIDGED.to_opener = 5, 3
BRIDGED.unsaid.update({"no such flag": 2})
