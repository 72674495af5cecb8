"""Clients take turns, workers have windows, and floods meet bounds."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specwire.runtime.norfab import jobs, workers
from specwire.runtime.norfab.commands import Open, Post, Ready
from specwire.runtime.norfab.fairness import FairQueue
from specwire.runtime.norfab.limits import Settings
from tests.runtime.norfab.scripted import Lab, job


@given(st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.integers()), max_size=40))
def test_a_fair_queue_is_in_order_for_each_client_and_takes_turns(items: list[tuple[bytes, int]]) -> None:
    queue: FairQueue[tuple[bytes, int]] = FairQueue()
    for client, number in items:
        queue.push(client, (client, number))
    left = Counter(client for client, _ in items)
    taken: list[tuple[bytes, int]] = []
    for _ in items:
        client, number = queue.pop()
        waiting = [other for other in left if left[other] and other != client]
        before = [earlier for earlier, _ in taken]
        if client in before:
            since = before[len(before) - before[::-1].index(client) :]
            assert set(waiting) <= set(since), "one came twice while another waited"
        left[client] -= 1
        taken.append((client, number))
    assert queue.size == 0
    for client in left:
        assert [item for item in taken if item[0] == client] == [item for item in items if item[0] == client]


def test_what_is_removed_from_a_queue_is_gone() -> None:
    queue: FairQueue[int] = FairQueue()
    for number in range(3):
        queue.push(b"a", number)
    queue.remove(b"a", 1)
    queue.remove(b"a", 7)
    queue.remove(b"b", 0)
    assert (queue.size, list(queue), [queue.pop(), queue.pop()], queue.size) == (2, [0, 2], [0, 2], 0)


def test_a_client_with_one_job_does_not_wait_for_another_s_thousand() -> None:
    for target in ("any", "w1"):
        lab = Lab(Settings(window=1))
        lab.ready("w1")
        for number in range(1000):
            lab.post(f"many{number}", target=target, client="greedy")
        lab.post("one", target=target, client="modest")
        order = lab.posts("w1")
        for _ in range(3):
            lab.respond("w1", uuid=order[-1])
            order += lab.posts("w1")
        assert order[:3] == ["many0", "many1", "one"]


def test_a_window_that_was_full_is_filled_with_several_jobs_at_a_time_or_in_a_moment() -> None:
    """Half of 8 are 4: the first three that end make no room, the fourth for four; a single one waits for the tick."""
    lab = Lab(Settings(window=8))
    lab.ready("w1")
    for number in range(20):
        lab.post(f"j{number}", target="w1")
    assert lab.posts("w1") == [f"j{number}" for number in range(8)]
    for number in range(3):
        lab.respond("w1", uuid=f"j{number}")
        assert lab.posts("w1") == []
    lab.respond("w1", uuid="j3")
    assert lab.posts("w1") == ["j8", "j9", "j10", "j11"]
    lab.respond("w1", uuid="j4")
    assert lab.posts("w1") == []
    lab.wait(0.25)
    assert lab.posts("w1") == ["j12"]


class Course:
    """One worker with more to do than it may have; `has`: what it was sent and has not ended."""

    def __init__(self, settings: Settings) -> None:
        self.lab = Lab(settings)
        self.lab.ready("w1")
        for number in range(2000):
            self.lab.post(f"j{number}", target="w1")
        self.has = self.lab.posts("w1")

    def end(self, jobs: int, after: float) -> int:
        """Let time pass, have so many end, and return how many it has then."""
        self.lab.now += after
        for _ in range(jobs):
            self.lab.respond("w1", uuid=self.has.pop(0))
        self.has += self.lab.posts("w1")
        return len(self.has)

    def tick(self, after: float) -> int:
        """Let time pass, and return how many it has after a tick."""
        self.lab.wait(after)
        self.has += self.lab.posts("w1")
        return len(self.has)


def test_a_worker_may_have_what_it_ends_within_a_moment() -> None:
    """0.1 s of 200 a second are 20; no more than 30, however quick; no fewer than 4, however slow."""
    course = Course(Settings(window=30, usual_window=4, ahead_s=0.1))
    assert len(course.has) == 4
    assert course.end(2, after=0.01) == 20
    assert course.end(9, after=0.001) == 11
    assert course.end(1, after=0.0005) == 20  # so short a time says nothing
    assert course.end(10, after=0.004) == 30
    assert course.end(15, after=0.15) == 15  # 10 in 0.1 s: what is there is ended first
    assert course.end(10, after=0.1) == 10


def test_a_window_is_narrowed_where_a_worker_becomes_slow() -> None:
    """At the next tick, though it has not ended half of what it has, and whatever was put in its place."""
    course = Course(Settings(window=256, usual_window=64))
    assert course.end(32, after=0.01) == 256
    for _ in range(40):  # 20 jobs a second, with four ticks in each
        course.lab.now += 0.05
        course.end(1, after=0.0)
        course.tick(0.2)
    assert len(course.has) == 216
    course.lab.post("one", client="modest", target="w1")
    while len(course.has) > 62:
        course.end(1, after=0.05)
    course.tick(0.25)
    assert "one" in course.has
    assert len(course.has) == 64


def test_what_is_deleted_or_late_is_not_quick() -> None:
    """Half of a window that is gone because nobody wants it says nothing of the worker."""
    course = Course(Settings(window=256, usual_window=8))
    course.lab.now += 0.01
    for uuid in course.has[:4]:
        course.lab.delete(uuid)
    course.has = course.has[4:] + course.lab.posts("w1")
    assert len(course.has) == 8


def test_a_window_of_another_size_holds_at_the_next_tick() -> None:
    """For workers that were there before, whether they have something to do or not."""
    course = Course(Settings())
    assert len(course.has) == 64
    course.lab.ready("w2")
    course.lab.engine.settings = Settings(window=2)
    course.tick(0.25)
    for number in range(9):
        course.lab.post(f"k{number}", target="w2")
    assert len(course.lab.posts("w2")) == 2
    course.end(64, after=0.01)
    assert len(course.has) == 2


def test_a_window_bounds_what_a_worker_has() -> None:
    lab = Lab(Settings(window=4))
    lab.ready("w1")
    for number in range(10):
        lab.post(f"j{number}")
    assert len(lab.statuses()) == 10
    assert len(lab.posts("w1")) == 4
    lab.respond("w1", uuid="j0")
    lab.respond("w1", uuid="j1")
    assert lab.posts("w1") == ["j4", "j5"]


def test_jobs_for_any_are_spread_over_the_workers() -> None:
    lab = Lab()
    lab.ready("w1", "w2", "w3")
    for number in range(9):
        lab.post(f"j{number}", target="any")
    assert [len(lab.posts(name)) for name in ("w1", "w2", "w3")] == [3, 3, 3]


def test_an_idle_worker_is_taken_before_a_busy_one() -> None:
    lab = Lab()
    lab.ready("w1", "w2")
    for number in range(4):
        lab.post(f"j{number}", target="any")
    done = lab.posts("w2")
    for uuid in done:
        lab.respond("w2", uuid=uuid)
    lab.post("next", target="any")
    assert lab.posts("w2") == ["next"]


def test_floods_meet_bounds() -> None:
    lab = Lab(Settings(workers=10, clients=20, jobs=50, jobs_per_client=100))
    for number in range(100):
        lab.say(f"w{number}", "worker", Ready("svc"))
        lab.say(f"c{number}", "client", Post(f"j{number}", job(), "svc", "any"))
    assert len(lab.engine.registry.workers) == 10
    assert lab.engine.jobs.open == 50
    assert [lab.statuses(f"c{number}") for number in (0, 49, 50, 99)] == [[202], [202], [500], [500]]


def test_an_oversize_body_is_refused_and_an_oversize_result_is_a_failure() -> None:
    lab = Lab(Settings(body_octets=100))
    lab.ready("w1")
    lab.post(body=job("x" * 100))
    assert lab.statuses() == [500]
    lab.post()
    lab.respond("w1", body=b'{"w1":{"result":"' + b"x" * 100 + b'"}}')
    assert lab.told()[-1][1]["error"] == "worker w1 sent more than a body may have"


def test_a_disk_that_is_behind_turns_jobs_away() -> None:
    lab = Lab(Settings(uncommitted=3), commits=False)
    lab.ready("w1")
    lab.commit()
    for number in range(5):
        lab.post(f"j{number}")
    assert lab.statuses() == [500, 500]
    lab.commit()
    lab.post("j9")
    lab.commit()
    assert lab.statuses() == [202, 202, 202, 202]


def test_reminders_of_jobs_that_have_ended_do_not_gather(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that may take a week is done in a second, and so are the next thousands."""
    monkeypatch.setattr(jobs, "TIDY_AT", 10)
    lab = Lab(Settings(kept_jobs=5))
    lab.ready("w1")
    for number in range(300):
        lab.post(f"j{number}", body=job(timeout=604_800))
        lab.respond("w1", uuid=f"j{number}")
    assert len(lab.engine.jobs.by_uuid) == 5
    assert len(lab.engine.jobs._agenda) <= 60
    lab.post("late", body=job(timeout=5))
    lab.wait(6, alive=["w1"])
    assert lab.statuses()[-1] == 408


def test_what_is_forgotten_holds_nothing() -> None:
    """Jobs and their parts hold each other, and the collector of cycles is not told of them."""
    lab = Lab(Settings(kept_jobs=1))
    lab.ready("w1")
    lab.post("j1")
    forgotten = lab.engine.jobs.by_uuid["j1"]
    lab.respond("w1", uuid="j1")
    lab.post("j2")
    lab.respond("w1", uuid="j2")
    assert (forgotten.tasks, forgotten.deleted) == ({}, True)
    lab.perform(lab.engine.stop(lab.now))
    assert all(not kept.tasks for kept in lab.engine.jobs.by_uuid.values())


def test_what_peers_announce_and_never_register_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b'{"resources":["r1","r2"]}'
    monkeypatch.setattr(workers, "MAX_ANNOUNCED_OCTETS", 3 * len(body))
    lab = Lab()
    for number in range(5):
        lab.say(f"w{number}", "worker", Open(body))
    lab.say("w3", "worker", Open(b'{"resources":[]}'))
    for number in range(5):
        lab.ready(f"w{number}")
    known = {name: sorted(worker.resources) for name, worker in lab.engine.registry.workers.items()}
    assert known == {"w0": [], "w1": [], "w2": ["r1", "r2"], "w3": [], "w4": ["r1", "r2"]}


def test_an_open_that_is_too_large_says_nothing() -> None:
    lab = Lab(Settings(open_octets=10))
    lab.say("w1", "worker", Open(b'{"resources":["r1","r2"]}'))
    lab.ready("w1")
    assert not lab.engine.registry.workers["w1"].resources
    assert lab.take("w1") == [Open()]
