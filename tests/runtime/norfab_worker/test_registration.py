"""Registration, signs of life, loss, and the list of brokers: one sentence of the specification for each test."""

from __future__ import annotations

from itertools import pairwise

import pytest

from specwire.runtime.norfab.commands import Command, Disconnect, Keepalive, Open, Ready
from specwire.runtime.norfab.names import InvalidNameError
from specwire.runtime.norfab.worker import actions
from specwire.runtime.norfab.worker.actions import Close, Connect, Send
from specwire.runtime.norfab.worker.engine import WorkerEngine
from specwire.runtime.norfab.worker.events import Connected, Disconnected, Dropped
from specwire.runtime.norfab.worker.limits import WorkerSettings
from tests.runtime.norfab_worker.laboratory import START, Lab, value

SETTINGS = WorkerSettings()


def test_a_worker_opens_the_connection_and_registers() -> None:
    """W: OPEN, B: OPEN, W: READY; nobody waits for the answer to OPEN."""
    engine = WorkerEngine("w1", "svc", now=START)
    assert engine.open(START) == [Connect(0), Send(Open()), Send(Ready("svc"))]


def test_open_says_what_the_worker_manages() -> None:
    engine = WorkerEngine("w1", "svc", now=START, resources=["r1", "r2", "r1"])
    assert engine.open(START)[1] == Send(Open(b'{"resources":["r1","r2"]}'))


@pytest.mark.parametrize("name", ["", "all", "any", "a,b", "a b", "x" * 256, "\udcff"])
def test_names_that_targets_cannot_mean_are_refused(name: str) -> None:
    with pytest.raises(InvalidNameError):
        WorkerEngine(name, "svc", now=START)


def test_the_worker_assumes_that_it_is_registered_when_it_hears_anything() -> None:
    lab = Lab(registered=False)
    assert not lab.engine.connection.registered
    lab.say(Keepalive("svc"))
    assert lab.reported(Connected) == [Connected("", "svc")]
    lab.say(Keepalive("svc"))
    assert len(lab.reported(Connected)) == 1


def test_signs_of_life_leave_on_the_interval() -> None:
    """A deployed broker counts nothing but KEEPALIVE, so it leaves whatever else is said."""
    lab = Lab()
    lab.wait(2.4)
    assert lab.sent == []
    for second in range(10):
        lab.post(f"j{second}")
        lab.wait(1.0)
    assert lab.sent.count(Keepalive("svc")) == 4


def test_a_silent_broker_is_lost_after_six_intervals() -> None:
    lab = Lab()
    lab.wait(14.9, alive=False)
    assert lab.of(Close) == []
    lab.wait(0.2, alive=False)
    assert len(lab.of(Close)) == 1
    assert lab.reported(Disconnected)[0].reason == "the broker was silent for 15 s"


@pytest.mark.parametrize("command", ["KEEPALIVE", "OPEN", "POST"])
def test_any_command_is_a_sign_of_life(command: str) -> None:
    lab = Lab()
    lab.wait(14.0, alive=False)
    if command == "POST":
        lab.post()
    else:
        lab.say(Keepalive("svc") if command == "KEEPALIVE" else Open())
    lab.wait(14.0, alive=False)
    assert lab.of(Close) == []


def test_after_disconnect_nothing_is_said_and_a_fresh_connection_follows() -> None:
    """The worker must send no further commands, close its socket, and reconnect on a new one."""
    lab = Lab()
    lab.post()
    lab.take()
    lab.say(Disconnect("svc"))
    assert not lab.connected
    lab.end()
    assert lab.sent == []
    lab.wait(0.2)
    assert lab.connections == [0, 0]
    assert lab.take() == [Open(), Ready("svc")]


def test_messages_of_a_connection_that_was_given_up_are_nothing() -> None:
    lab = Lab()
    lab.say(Disconnect("svc"))
    lab.post()
    assert lab.engine.jobs.by_uuid == {}


def silences(lab: Lab, seconds: float) -> list[tuple[bool, int]]:
    """Return, for each connection that the worker ends, whether it was named, and its seconds."""
    found = []
    opened_at = lab.now
    for _ in range(int(seconds * 10)):
        named, closed = lab.of(Connect)[-1].named, len(lab.of(Close))
        opened = len(lab.of(Connect))
        lab.wait(0.1, alive=False)
        if len(lab.of(Close)) > closed:
            found.append((named, round(lab.now - opened_at)))
        if len(lab.of(Connect)) > opened:
            opened_at = lab.now
    return found


def test_silence_on_a_new_connection_is_tolerated_for_longer_each_time() -> None:
    """libzmq ignores a new connection while the broker has not released the old one of this name.

    After each, the worker asks on an unnamed connection whether the name is taken.
    """
    lab = Lab(registered=False)
    assert silences(lab, 60)[:6] == [(True, 5), (False, 5), (True, 10), (False, 5), (True, 15), (False, 5)]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            Open(b'{"taken":true}'),
            "another worker named w1 is connected: stop that one, or choose another name",
        ),
        (Open(), "the broker answers, but did not register a worker named w1"),
        (Open(b"\xff"), "the broker answers, but did not register a worker named w1"),
        (Disconnect("svc"), "the broker answers, but did not register a worker named w1"),
    ],
)
def test_a_worker_asks_whether_its_name_is_taken(answer: Command, reason: str) -> None:
    """It asks the same broker, sends nothing else there, and tries again afterwards."""
    lab = Lab(registered=False)
    while lab.of(Connect)[-1].named:
        lab.wait(0.1, alive=False)
    assert lab.of(Connect)[-1].broker == lab.of(Connect)[-2].broker
    assert lab.of(Send)[-1] == Send(Open(b'{"name":"w1"}'))
    sent = len(lab.of(Send))
    lab.wait(3.0, alive=False)
    assert len(lab.of(Send)) == sent
    lab.perform(lab.engine.receive(answer, lab.now))
    assert lab.reported(Disconnected)[-1].reason == reason
    lab.wait(2.0, alive=False)
    assert lab.of(Connect)[-1].named


def test_a_broker_that_comes_back_has_its_workers_within_three_seconds() -> None:
    lab = Lab()
    for away in range(1, 61, 7):
        lab.perform(lab.engine.lost("connection refused", lab.now))
        until = lab.now + away
        while lab.now < until:  # nobody listens: each attempt fails at once
            lab.wait(0.1, alive=False)
            if lab.connected:
                lab.perform(lab.engine.lost("connection refused", lab.now))
        returned = lab.now
        while not lab.connected:
            lab.wait(0.1, alive=False)
        assert lab.now - returned < 3.0
        lab.say(Open())
        lab.wait(5.0)


def test_attempts_become_seldom_and_stay_above_a_bound() -> None:
    lab = Lab(registered=False)
    times = []
    for _ in range(300):
        if lab.connected:
            lab.perform(lab.engine.lost("connection refused", lab.now))
            times.append(lab.now)
        lab.wait(0.05, step=0.05, alive=False)
    gaps = [later - sooner for sooner, later in pairwise(times)]
    assert gaps[0] < 0.3
    assert all(0.7 < gap < 1.4 for gap in gaps[5:])


def test_workers_do_not_come_back_in_step() -> None:
    delays = set()
    for number in range(50):
        engine = WorkerEngine(f"w{number}", "svc", now=START)
        engine.open(START)
        [report] = [
            action.happening
            for action in engine.lost("gone", START)
            if isinstance(action, actions.Report) and isinstance(action.happening, Disconnected)
        ]
        delays.add(report.retry_s)
    assert len(delays) > 20


def test_a_broker_that_turns_the_worker_away_is_not_asked_in_a_rush() -> None:
    """It answers OPEN, and then READY with DISCONNECT: that is no success."""
    lab = Lab(registered=False)
    for _ in range(200):
        if lab.connected:
            lab.say(Open())
            lab.say(Disconnect("svc"))
        lab.wait(0.1)
    assert len(lab.connections) < 30


# --- several brokers


def lose(lab: Lab) -> None:
    """Let the connection fail."""
    lab.perform(lab.engine.lost("connection refused", lab.now))


def test_a_broker_that_is_gone_for_good_is_followed_by_the_next() -> None:
    lab = Lab(brokers=("a", "b", "c"))
    lab.wait(60)
    lost_at = lab.now
    lose(lab)
    while lab.connections[-1] == 0 and lab.now < lost_at + 60:
        lab.wait(0.1, alive=False)
        if lab.connected and lab.connections[-1] == 0:
            lose(lab)
    assert lab.connections[-1] == 1
    assert 10 <= lab.now - lost_at < 12.5
    lab.say(Open())
    assert lab.reported(Connected)[-1].broker == "b"


def test_a_broker_that_was_lost_for_a_moment_is_kept_to() -> None:
    lab = Lab(brokers=("a", "b"))
    lab.wait(60)
    for _ in range(5):
        lose(lab)
        lab.wait(3.0)
        lab.say(Open())
        lab.wait(20)
    assert set(lab.connections) == {0}


def test_brokers_that_were_never_reached_take_turns() -> None:
    lab = Lab(brokers=("a", "b", "c"), registered=False)
    for _ in range(100):
        if lab.connected:
            lose(lab)
        lab.wait(0.1, alive=False)
    assert lab.connections[:7] == [0, 1, 2, 0, 1, 2, 0]


def test_jobs_go_on_while_no_broker_is_there_and_results_are_owed() -> None:
    """The next broker hears of them when it asks, or, where it does not ask, after a while."""
    lab = Lab()
    lab.post()
    lab.take()
    lose(lab)
    lab.end("j1", value(7))
    lab.wait(1.0, alive=False)
    assert [type(command) for command in lab.take()] == [Open, Ready]
    lab.say(Open())
    lab.wait(4.0)
    assert lab.told() == []
    lab.wait(2.0)
    assert [entry["result"] for entry in lab.ends()] == [7]
    lab.wait(20.0)
    assert len(lab.ends()) == 1


def test_a_result_that_the_broker_has_asked_for_is_not_sent_again() -> None:
    lab = Lab()
    lab.post()
    lose(lab)
    lab.end()
    lab.wait(1.0, alive=False)
    lab.say(Open())
    lab.get()
    lab.wait(20.0)
    assert len(lab.ends()) == 1


# --- what cannot be read, and time that stood still


def test_a_message_that_cannot_be_read_is_dropped_and_counted() -> None:
    lab = Lab()
    lab.perform(lab.engine.malformed("no header", lab.now))
    assert lab.reported(Dropped) == [Dropped("malformed", "no header")]
    assert lab.connected


def test_a_command_that_no_broker_sends_is_dropped() -> None:
    lab = Lab()
    lab.say(Ready("svc"))
    assert lab.reported(Dropped) == [Dropped("unexpected", "no broker sends READY to a worker")]


def test_a_worker_that_stood_still_does_not_blame_the_broker() -> None:
    """After SIGSTOP and SIGCONT the broker's messages wait unread: they are looked at first."""
    lab = Lab()
    lab.wait(1.0)
    lab.now += 3600
    lab.perform(lab.engine.tick(lab.now))
    assert lab.connected
    lab.wait(14.0, alive=False)
    assert lab.connected
    lab.wait(2.0, alive=False)
    assert lab.of(Close)
