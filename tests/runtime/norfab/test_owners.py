"""Whose a job is: the user's where security knows one, else the connection's."""

from __future__ import annotations

from specwire.runtime.norfab.access import Everyone
from specwire.runtime.norfab.limits import Settings
from tests.runtime.norfab.scripted import Lab, result


class OwnOnly(Everyone):
    """Everyone sees his own jobs."""

    def may_see(self, user: str, owner: str) -> bool:
        """See `Access.may_see`."""
        return bool(owner) and user == owner


def test_a_user_has_one_limit_however_many_connections() -> None:
    lab = Lab(Settings(jobs_per_client=2))
    lab.ready("w1")
    for number in range(3):
        lab.post(f"j{number}", client=f"ann-{number}", user="ann")
    assert [lab.statuses(f"ann-{number}") for number in range(3)] == [[202], [202], [500]]
    lab.post("k", client="bob-1", user="bob")
    assert lab.statuses("bob-1") == [202]
    lab.respond("w1", uuid="j0")
    lab.post("j3", client="ann-9", user="ann")
    assert lab.statuses("ann-9") == [202]


def test_without_security_each_connection_has_its_limit() -> None:
    lab = Lab(Settings(jobs_per_client=1))
    lab.ready("w1")
    for client in ("c1", "c2", "c1"):
        lab.post(f"{client}-{lab.engine.jobs.open}", client=client)
    assert (lab.statuses("c1"), lab.statuses("c2")) == ([202, 500], [202])


def test_a_user_has_one_turn_however_many_connections() -> None:
    lab = Lab(Settings(window=1))
    lab.ready("w1")
    for number in range(4):
        lab.post(f"a{number}", client=f"ann-{number}", user="ann")
    lab.post("b0", client="bob-1", user="bob")
    done = []
    for _ in range(5):
        (uuid,) = lab.posts("w1")
        done.append(uuid)
        lab.respond("w1", uuid=uuid)
    assert done.index("b0") <= 2


def test_a_job_is_its_user_s_on_every_connection() -> None:
    lab = Lab(access=OwnOnly())
    lab.ready("w1")
    lab.post(client="ann-1", user="ann")
    lab.respond("w1")
    lab.get(client="ann-2", user="ann")
    assert lab.statuses("ann-2") == [202, 200]
    lab.get(client="bob-1", user="bob")
    lab.post(client="bob-1", user="bob")
    lab.delete(client="bob-1", user="bob")
    assert lab.statuses("bob-1") == [400, 400, 400]
    lab.delete(client="ann-3", user="ann")
    assert lab.statuses("ann-3") == [200]


def test_workers_are_not_asked_for_a_job_whose_owner_nobody_knows_by_whom_that_matters() -> None:
    """The broker has forgotten the job; a worker would tell its result to anyone."""
    lab = Lab(access=OwnOnly())
    lab.ready("w1")
    lab.get("old", client="bob-1", user="bob")
    assert (lab.statuses("bob-1"), lab.take("w1")) == ([400], [])
    lab = Lab()
    lab.ready("w1")
    lab.get("old")
    lab.respond("w1", uuid="old", body=result("w1"))
    assert lab.statuses() == [202, 200]


def test_connections_that_are_gone_make_room_for_those_that_wait() -> None:
    lab = Lab(Settings(listeners_per_job=3))
    lab.ready("w1")
    lab.post(client="c-0")
    for number in range(1, 10):
        lab.perform(lab.engine.unreachable(f"c-{number - 1}".encode(), "client", lab.now))
        lab.get(client=f"c-{number}")
        assert lab.statuses(f"c-{number}") == [202, 300]
    lab.get(client="d-1")
    lab.get(client="d-2")
    lab.get(client="d-3")
    assert lab.statuses("d-3") == [500]
    lab.respond("w1")
    assert lab.statuses("c-9") == [200]


def test_a_client_that_was_away_and_speaks_again_is_heard() -> None:
    lab = Lab(Settings(listeners_per_job=1))
    lab.ready("w1")
    lab.post()
    lab.perform(lab.engine.unreachable(b"c1", "client", lab.now))
    lab.get()
    lab.take("c1")
    lab.get(client="c2")
    assert lab.statuses("c2") == [500]
    lab.respond("w1")
    assert lab.statuses("c1") == [200]


def test_unfinished_parts_are_bounded() -> None:
    lab = Lab(Settings(parts=4))
    lab.ready("w1", "w2")
    for number in range(3):
        lab.post(f"j{number}")
    assert lab.statuses() == [202, 202, 500]
    lab.respond("w1", uuid="j0")
    lab.respond("w2", uuid="j0")
    lab.take("c1")
    lab.post("j3")
    assert lab.statuses() == [202]
    assert lab.engine.jobs.parts == 4
    lab.delete("j1")
    assert lab.engine.jobs.parts == 2
