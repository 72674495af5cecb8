"""The word that a job was taken waits for what says so, too, and no longer than it may."""

from __future__ import annotations

from specwire.runtime.norfab.commands import Event, Response
from specwire.runtime.norfab.worker.bodies import Progress
from tests.runtime.norfab_worker.laboratory import Lab


def test_a_result_that_comes_soon_says_that_the_job_was_taken() -> None:
    lab = Lab(acknowledge_s=0.1)
    lab.post()
    assert lab.statuses() == []
    lab.end()
    lab.wait(1.0)
    assert lab.statuses() == [200]


def test_where_it_takes_longer_the_word_is_said_in_time() -> None:
    lab = Lab(acknowledge_s=0.25)
    lab.post("j1")
    lab.wait(0.2)
    lab.post("j2")
    assert (lab.statuses("j1"), lab.statuses("j2")) == ([], [])
    lab.wait(0.1)
    assert (lab.statuses("j1"), lab.statuses("j2")) == ([201], [])
    lab.wait(0.2)
    lab.end("j1")
    assert (lab.statuses("j1"), lab.statuses("j2")) == ([201, 200], [201])


def test_it_is_not_said_before_the_job_is_durable() -> None:
    lab = Lab(acknowledge_s=0.1, commits=False)
    lab.post()
    lab.wait(1.0)
    assert lab.statuses() == []
    lab.commit()
    lab.wait(0.2)
    assert lab.statuses() == [201]


def test_progress_comes_after_it() -> None:
    lab = Lab(acknowledge_s=0.1)
    lab.post()
    lab.perform(lab.engine.progress("j1", Progress(message="half"), lab.now))
    lab.perform(lab.engine.stream("j1", b"octets", lab.now))
    assert [type(command).__name__ for command in lab.sent[-3:]] == ["Response", "Event", "Stream"]
    assert lab.statuses() == [201]
    assert [event["message"] for event in lab.events()] == ["half"]


def test_an_answer_to_a_question_says_so_too() -> None:
    lab = Lab(acknowledge_s=0.1)
    lab.post()
    lab.get()
    lab.wait(1.0)
    assert lab.statuses() == [300]


def test_a_deployed_broker_hears_it_at_once() -> None:
    """It does not answer OPEN, and its clients may wait for the word."""
    lab = Lab(acknowledge_s=0.1, registered=False)
    lab.post()
    assert lab.statuses() == [201]


def test_nothing_of_it_is_left_for_the_next_connection() -> None:
    """The next broker may never have heard of the job; this one asks, and is answered."""
    lab = Lab(acknowledge_s=0.1)
    lab.post()
    lab.perform(lab.engine.lost("cut", lab.now))
    lab.wait(5.0)
    assert lab.connected
    assert [command for command in lab.sent if isinstance(command, Response | Event)] == []
    lab.get()
    assert lab.statuses() == [300]
