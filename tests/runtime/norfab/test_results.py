"""Bodies of results: in memory while there is room, else read from the store, each once and bounded."""

from __future__ import annotations

import json

from specwire.runtime.norfab.actions import Fetch
from specwire.runtime.norfab.limits import Settings
from specwire.runtime.norfab.records import HeldResult, ResultRecord
from tests.runtime.norfab.scripted import START, Lab, result

SIZE = len(result("w1"))


def finished(settings: Settings, count: int = 3) -> Lab:
    """Return a broker with jobs that have ended; the store is read when the test says so."""
    lab = Lab(settings)
    lab.reads = False
    lab.ready("w1")
    for number in range(count):
        lab.post(f"j{number}")
        lab.respond("w1", uuid=f"j{number}")
    lab.take("c1")
    return lab


def again(lab: Lab, settings: Settings | None = None, *, held: bool = False) -> Lab:
    """Return a new broker with what the other one stored, with `held` as a store tells it that keeps the bodies."""
    records = [
        HeldResult(record.uuid, record.slot, record.status, len(record.body), record.ended_at)
        if held and isinstance(record, ResultRecord)
        else record
        for record in lab.records
    ]
    new = Lab(settings, records=records, now=lab.now)
    new.records = list(lab.records)
    new.reads = False
    return new


def test_a_result_that_is_in_memory_is_not_read_again() -> None:
    lab = finished(Settings())
    lab.get("j0")
    assert lab.statuses() == [202, 200]
    assert lab.fetches == []


def test_memory_has_what_was_needed_last() -> None:
    lab = finished(Settings(cached_octets=2 * SIZE))
    assert lab.engine.results.octets == 2 * SIZE
    lab.get("j1")
    lab.get("j0")
    assert lab.fetches == [Fetch(1, "j0", "w1")]
    lab.read()
    assert lab.statuses() == [202, 200, 202, 200]
    lab.get("j1")
    assert lab.fetches == []
    lab.get("j2")
    assert lab.fetches == [Fetch(2, "j2", "w1")]
    assert lab.engine.results.octets <= 2 * SIZE


def test_a_result_larger_than_all_memory_for_results_is_still_told() -> None:
    lab = finished(Settings(cached_octets=SIZE - 1), count=0)
    lab.post()
    lab.respond("w1")
    assert lab.statuses() == [202, 200]
    assert lab.engine.results.octets == 0
    lab.get()
    lab.read()
    assert lab.told()[1] == (200, json.loads(result("w1")))


def test_what_ended_before_a_restart_is_read_from_the_store() -> None:
    for held in (False, True):
        lab = again(finished(Settings(), count=2), held=held)
        assert lab.engine.results.octets == 0
        assert lab.engine.jobs.kept_octets == 2 * SIZE
        lab.get("j1")
        assert lab.fetches == [Fetch(1, "j1", "w1")]
        assert lab.statuses() == [202]
        lab.read()
        assert lab.told() == [(200, json.loads(result("w1")))]


def test_several_clients_want_a_result_and_it_is_read_once() -> None:
    lab = again(finished(Settings()))
    for client in ("c1", "c2", "c1"):
        lab.get("j0", client=client)
    assert len(lab.fetches) == 1
    lab.read()
    assert lab.statuses("c2") == [202, 200]
    assert lab.statuses("c1") == [202, 202, 200]


def test_only_so_many_octets_are_on_their_way() -> None:
    lab = again(finished(Settings(), count=5), Settings(fetch_octets=2 * SIZE))
    for number in range(5):
        lab.get(f"j{number}")
    assert [fetch.uuid for fetch in lab.fetches] == ["j0", "j1"]
    lab.read()
    assert [fetch.uuid for fetch in lab.fetches] == ["j2", "j3"]
    lab.read()
    lab.read()
    assert lab.statuses().count(200) == 5


def test_one_result_is_read_however_large_it_is() -> None:
    lab = again(finished(Settings()), Settings(fetch_octets=1))
    for number in range(3):
        lab.get(f"j{number}")
    for _ in range(3):
        assert len(lab.fetches) == 1
        lab.read()
    assert lab.statuses().count(200) == 3


def test_questions_to_the_store_are_bounded() -> None:
    lab = again(finished(Settings()), Settings(fetches=2))
    for number in range(3):
        lab.get(f"j{number}")
    assert lab.statuses() == [202, 202, 202, 500]


def test_a_result_that_cannot_be_read_says_so() -> None:
    lab = again(finished(Settings()))
    lab.get("j0")
    lab.perform(lab.engine.fetched(1, None, START))
    (_, (status, body)) = lab.told()
    assert (status, body["errors"]) == (500, ["the result of w1 cannot be read"])
    lab.fetches.clear()
    lab.get("j0")
    assert len(lab.fetches) == 1


def test_a_job_that_is_deleted_while_its_result_is_read_has_none() -> None:
    lab = again(finished(Settings()))
    lab.get("j0", client="c1")
    lab.delete("j0", client="c2")
    lab.take("c2")
    lab.read()
    assert lab.statuses("c1") == [202, 400]
    assert lab.engine.results.octets == 0


def test_an_answer_that_was_not_asked_for_is_nothing() -> None:
    lab = finished(Settings())
    lab.perform(lab.engine.fetched(77, b"{}", START))
    assert lab.take("c1") == []


def test_what_is_forgotten_is_not_in_memory() -> None:
    lab = finished(Settings(kept_jobs=1))
    assert lab.engine.results.octets == SIZE


def test_a_part_that_has_ended_is_read_while_others_run() -> None:
    lab = finished(Settings(cached_octets=0), count=0)
    lab.ready("w2")
    lab.post("j1", client="c1")
    lab.respond("w1", uuid="j1")
    lab.get("j1", client="c9")
    assert lab.statuses("c9") == [202, 300]
    lab.read()
    assert lab.statuses("c9") == [200]
