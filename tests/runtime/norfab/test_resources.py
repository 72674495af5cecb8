"""Resources: a worker says what it manages, may say otherwise later, and management tells who manages what."""

from __future__ import annotations

from typing import Any

import pytest

from specwire.runtime.norfab.commands import Open, Post
from tests.runtime.norfab.scripted import Lab, job


def test_who_manages_what_is_told() -> None:
    lab = Lab()
    lab.announce("w1", "r1", "r2")
    lab.ready("w1", "w2")
    lab.announce("w2", "r2")
    lab.announce("x1", "r1")
    lab.ready("x1", service="other")
    rows = [
        {"resource": "r1", "service": "other", "workers": ["x1"]},
        {"resource": "r1", "service": "svc", "workers": ["w1"]},
        {"resource": "r2", "service": "svc", "workers": ["w1", "w2"]},
    ]
    assert lab.manage("show_resources") == (200, rows)
    assert lab.manage("show_resources", service="svc") == (200, rows[1:])
    assert lab.manage("show_resources", resource="r1") == (200, rows[:2])
    assert lab.manage("show_resources", worker="x1") == (200, rows[:1])
    assert lab.manage("show_resources", resource="r9") == (200, [])


@pytest.mark.parametrize("odd", [5, [["r1"]], {"a": 1}, None, True])
def test_odd_arguments_do_no_harm(odd: Any) -> None:
    lab = Lab()
    lab.announce("w1", "r1")
    lab.ready("w1")
    for name in ("service", "resource", "worker", "workers", "status"):
        for task in ("show_resources", "show_workers", "disconnect"):
            assert lab.manage(task, **{name: odd})[0] == 200


def test_resources_change_at_run_time() -> None:
    lab = Lab()
    lab.announce("w1", "r1")
    lab.ready("w1", "w2")
    lab.post("j1", body=job(resources=["r2"]))
    assert lab.posts("w1") + lab.posts("w2") == []
    lab.announce("w2", "r2")
    assert [type(said) for said in lab.take("w2")] == [Open, Post]
    lab.announce("w1", "r2")
    lab.announce("w2", "r1")
    lab.take("w1")
    lab.take("w2")
    lab.post("j2", body=job(resources=["r2"]))
    assert (lab.posts("w1"), lab.posts("w2")) == (["j2"], [])


def test_an_open_without_resources_takes_them_away() -> None:
    lab = Lab()
    lab.announce("w1", "r1")
    lab.ready("w1")
    lab.say("w1", "worker", Open())
    assert lab.manage("show_resources") == (200, [])
