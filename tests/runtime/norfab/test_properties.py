"""Random commands of random peers at random times: nothing raises, every job ends, memory is bounded."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.generated import norfab, norfab_ascii
from specwire.generated.errors import DecodeError, EncodeError
from specwire.runtime.norfab.actions import Send
from specwire.runtime.norfab.broker import BrokerEngine
from specwire.runtime.norfab.commands import (
    Command,
    Delete,
    Disconnect,
    Event,
    Get,
    Keepalive,
    Mmi,
    MmiReply,
    Open,
    Post,
    Put,
    Ready,
    Response,
    Role,
    Stream,
)
from specwire.runtime.norfab.events import JobAccepted
from specwire.runtime.norfab.limits import Settings
from specwire.runtime.norfab.wire import Dialects, encode
from tests.examples import examples
from tests.runtime.norfab.scripted import START, Lab, job

SMALL = Settings(
    queue_s=20,
    job_s=60,
    longest_job_s=100,
    poll_s=2,
    window=5,
    usual_window=2,
    jobs_per_client=8,
    jobs=20,
    job_octets=2000,
    body_octets=300,
    waiting_per_service=6,
    listeners_per_job=3,
    events_per_job=2,
    kept_jobs=6,
    kept_octets=3000,
    kept_parts=8,
    parts=10,
    tasks_per_job=3,
    cached_octets=150,
    fetches=3,
    fetch_octets=200,
    manage_s=15,
    workers=4,
    clients=5,
    inquiries=4,
    asks=3,
    uncommitted=30,
)

PEERS = st.sampled_from(
    [b"w1", b"w2", b"w3", b"c1", b"c2", b"all", b"\xff", b"a,b", b"", b"x" * 300]
) | st.binary(max_size=4)
UUIDS = st.sampled_from(["j1", "j2", "j3", "j4", "j5", "", "a b", "\u00e9", "x" * 256]) | st.text(max_size=3)
SERVICES = st.sampled_from(
    [
        "svc",
        "svc",
        "svc",
        "other",
        "",
        "mmi.service.broker",
        "mmi.service.worker",
        "sid.service.broker",
    ]
)
TARGETS = st.sampled_from(["all", "any", "any", "", "w1", "w1,w2", '["w2"]', "[", "w9", "[1]"]) | st.text(
    max_size=4
)
TASKS = st.sampled_from(
    [
        "show_broker",
        "show_workers",
        "show_clients",
        "show_services",
        "show_resources",
        "show_jobs",
        "disconnect",
        "get_stats",
        "get_inventory",
        "?",
    ]
)
BODIES = (
    st.just(job())
    | st.sampled_from(
        [b"", b"{}", b"[]", b"nonsense", b'{"task":1}', b"[" * 250, b'{"w1":{"result":1}}', b'{"w2":{}}']
    )
    | st.builds(lambda task, timeout: job(task, timeout=timeout), TASKS, st.floats(-1, 50) | st.none())
    | st.sampled_from(
        [b'{"event_type":"result_ready"}', b'{"resources":["r1"]}', job(resources=["r1"]), b"x" * 400]
    )
    | st.builds(
        lambda task, names: job(task, kwargs={"workers": names}), TASKS, st.sampled_from(["all", ["w1"], 5])
    )
    | st.binary(max_size=8)
)
STATUSES = st.sampled_from([102, 200, 200, 201, 202, 300, 400, 404, 408, 417, 500, 0, 999])

COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.builds(Open, BODIES),
    st.builds(Ready, SERVICES),
    st.builds(Keepalive, SERVICES),
    st.builds(Disconnect, SERVICES),
    *(st.builds(kind, UUIDS, BODIES, SERVICES, TARGETS, PEERS) for kind in (Post, Post, Get, Delete, Put)),
    *(
        st.builds(kind, UUIDS, STATUSES, BODIES, SERVICES, PEERS)
        for kind in (Response, Response, Event, Stream)
    ),
    st.builds(Mmi, UUIDS, BODIES, SERVICES, TARGETS),
    st.builds(MmiReply, UUIDS, STATUSES, BODIES, SERVICES),
)
ROLES: st.SearchStrategy[Role] = st.sampled_from(["client", "client", "worker", "worker", "broker"])
STEPS = st.one_of(
    st.tuples(st.just("say"), PEERS, ROLES, COMMANDS, st.sampled_from(["", "", "anna"])),
    st.tuples(st.just("say"), st.sampled_from([b"w1", b"w2"]), st.just("worker"), COMMANDS, st.just("")),
    st.tuples(st.just("commit"), st.integers(1, 5)),
    st.tuples(st.just("fail")),
    st.tuples(st.just("wait"), st.floats(0, 20)),
    st.tuples(st.just("gone"), PEERS, ROLES),
    st.tuples(st.just("malformed"), PEERS, ROLES),
    st.tuples(st.just("answer"), st.integers(0, 5)),
    st.tuples(st.just("read")),
    st.tuples(st.just("unreadable"), st.integers(0, 9)),
)


WORKERS, CLIENTS = st.sampled_from([b"w1", b"w2"]), st.sampled_from([b"c1", b"c2", b"c3"])
JOBS = st.sampled_from(["j1", "j2", "j3", "j4"])
MEANT = st.sampled_from(["all", "all", "any", "w1", "w1,w2"])
ENDS = st.sampled_from([b'{"w1":{"result":1}}', b'{"w2":{"result":2}}', b"5", b"x", b'"' + b"r" * 200 + b'"'])
ASK = b'{"task":"show_broker"}'


def _says(peers: st.SearchStrategy[bytes], role: Role, kind: Any, *fields: Any) -> Any:
    return st.tuples(st.just("say"), peers, st.just(role), st.builds(kind, *fields), st.just(""))


LIKELY = st.one_of(
    _says(WORKERS, "worker", Ready, st.just("svc")),
    _says(WORKERS, "worker", Disconnect, st.just("svc")),
    _says(WORKERS, "worker", Open, st.sampled_from([b"", b'{"resources":["r1"]}'])),
    *(_says(CLIENTS, "client", Post, JOBS, st.just(job()), st.just("svc"), MEANT) for _ in range(3)),
    *(_says(CLIENTS, "client", Get, JOBS, st.just(b"{}"), st.just("svc"), MEANT) for _ in range(2)),
    _says(CLIENTS, "client", Delete, JOBS, st.just(b"{}"), st.just("svc"), MEANT),
    *(
        _says(WORKERS, "worker", Response, JOBS, status, ENDS, st.just(""), CLIENTS)
        for status in (st.just(200), st.just(200), STATUSES)
    ),
    _says(CLIENTS, "client", Mmi, JOBS, st.just(ASK), st.just("mmi.service.worker"), MEANT),
    *(st.tuples(st.just("commit"), st.integers(1, 5)) for _ in range(3)),
    st.tuples(st.just("read")),
    st.tuples(st.just("unreadable"), st.integers(0, 9)),
    st.tuples(st.just("wait"), st.floats(0, 6)),
    STEPS,
)


def play(lab: Lab, step: tuple[Any, ...]) -> None:
    """Do one step."""
    match step:
        case ("say", peer, role, command, user):
            lab.say(peer, role, command, user)
        case ("commit", count):
            lab.commit(count)
        case ("fail",) if lab.waiting:
            store = lab.waiting.pop(0)
            lab.perform(lab.engine.not_stored(store.ticket, "full", lab.now))
        case ("wait", seconds):
            lab.now += seconds
            lab.perform(lab.engine.tick(lab.now))
        case ("gone", peer, role):
            lab.perform(lab.engine.unreachable(peer, role, lab.now))
        case ("malformed", peer, role):
            lab.perform(lab.engine.malformed(peer, role, "torn", lab.now))
        case ("answer", question):
            lab.perform(lab.engine.answer(question, 200, b"{}", lab.now))
        case ("read",):
            lab.read()
        case ("unreadable", question):
            lab.perform(lab.engine.fetched(question, None, lab.now))


def check_bounds(engine: BrokerEngine) -> None:
    """Everything that grows is within its bound, and every count is what it counts."""
    jobs = engine.jobs
    unfinished = [one for one in jobs.by_uuid.values() if one.uuid not in jobs.kept]
    assert len(unfinished) == jobs.open <= SMALL.jobs
    assert sum(one.octets for one in jobs.by_uuid.values()) == jobs.octets <= SMALL.job_octets
    assert len(jobs.kept) <= SMALL.kept_jobs
    assert sum(one.result_octets for one in jobs.kept.values()) == jobs.kept_octets <= SMALL.kept_octets
    assert len(engine.registry.workers) <= SMALL.workers
    assert len(engine.clients) <= SMALL.clients + SMALL.jobs
    assert len(engine.inquiries) <= SMALL.inquiries
    assert len(engine.errands) <= SMALL.asks
    assert sum(one.parts for one in unfinished) == jobs.parts < SMALL.parts + SMALL.tasks_per_job * SMALL.jobs
    assert sum(len(one.tasks) for one in jobs.kept.values()) == jobs.kept_parts <= SMALL.kept_parts
    held = [task.result for one in jobs.by_uuid.values() for task in one.tasks.values()]
    in_memory = [len(result.body) for result in held if result is not None and result.body is not None]
    assert engine.results.octets <= SMALL.cached_octets
    assert sum(in_memory) <= engine.results.octets + sum(
        task.result.octets
        for one in unfinished
        for task in one.tasks.values()
        if task.result is not None and task.state.name == "ENDING"
    )
    for one in unfinished:
        assert len(one.listeners) <= SMALL.listeners_per_job + 1
        assert one.open == sum(task.state.name != "DONE" for task in one.tasks.values())
    for worker in engine.registry.workers.values():
        service = engine.registry.services[worker.service]
        assert (worker.name in service.idle) is (not worker.tasks)
        assert (worker.name in service.roomy) is (len(worker.tasks) < worker.window)
        assert all(task.worker == worker.name for task in worker.tasks.values())


@settings(max_examples=examples(250), deadline=None)
@given(st.lists(STEPS, max_size=60))
def test_nothing_raises_everything_ends_and_memory_is_bounded(steps: list[tuple[Any, ...]]) -> None:
    check_story(Lab(SMALL, commits=False, shell_tasks={"sid.service.broker": None}), steps)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(LIKELY, max_size=80))
def test_the_same_among_peers_that_mostly_do_as_they_should(steps: list[tuple[Any, ...]]) -> None:
    lab = Lab(SMALL, commits=False, shell_tasks={"sid.service.broker": None})
    lab.ready("w1", "w2")
    lab.commit()
    check_story(lab, steps)


def check_story(lab: Lab, steps: list[tuple[Any, ...]]) -> None:
    """Play it, and hold what the broker said and has against what it may say and have."""
    lab.reads = False
    for step in steps:
        play(lab, step)
        check_bounds(lab.engine)
    lab.commit()
    lab.commits = lab.reads = True
    lab.wait(400, step=5)
    assert lab.engine.jobs.open == 0
    assert lab.engine.jobs.octets == 0
    assert not lab.engine.registry.absent
    assert not lab.engine.registry.services
    assert len(lab.engine.inquiries) + len(lab.engine.errands) + lab.engine.jobs.parts == 0
    assert len(lab.engine.commits) == 0
    check_every_end(lab, {accepted.uuid: accepted.workers for accepted in lab.reported(JobAccepted)})


def check_every_end(lab: Lab, accepted: dict[str, tuple[str, ...]]) -> None:
    """For each worker of an acknowledged job somebody was told an end."""
    ends: dict[str, set[str]] = {}
    for send in lab.sent:
        if isinstance(send.command, Response) and send.command.status not in (102, 201, 202, 300):
            body = json.loads(send.command.body)
            if isinstance(body, dict):
                ends.setdefault(send.command.uuid, set()).update(body)
    for uuid, workers in accepted.items():
        told = ends.get(uuid, set())
        refused = {"errors", "DELETED", "status"} & told
        assert set(workers) <= told or refused, (uuid, workers, told)


FRAMES = st.one_of(
    *(
        strategy
        for strategies in (norfab.strategies, norfab_ascii.strategies)
        for strategy in (strategies.frames(), strategies.mutated_frames(), strategies.malformed_frames())
    ),
    st.lists(st.binary(max_size=6), max_size=9),
)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.tuples(PEERS, FRAMES), max_size=25))
def test_random_frames_never_raise_and_what_goes_out_can_be_written(
    said: list[tuple[bytes, list[bytes]]],
) -> None:
    engine, dialects, now = BrokerEngine(SMALL, now=START), Dialects(limit=10), START
    for peer, message in said:
        now += 1
        try:
            received = dialects.decode(peer, message)
        except DecodeError as error:
            actions = engine.malformed(peer, None, str(error), now)
        else:
            actions = engine.receive(peer, received.sender, received.command, now)
        actions += engine.stored(engine.commits.ticket, now) + engine.tick(now)
        for action in actions:
            if isinstance(action, Send):
                try:
                    assert (
                        len(
                            encode(
                                action.command, dialects.of(action.peer, action.role), "broker", action.role
                            )
                        )
                        >= 4
                    )
                except EncodeError:
                    assert isinstance(action.command, Put | Stream) or not action.peer
