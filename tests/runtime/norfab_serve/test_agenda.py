"""When a broker performs what its engine wants: at once where nothing waits, and in order."""

from __future__ import annotations

import asyncio

import pytest

from specwire.runtime.norfab.actions import Fetch
from specwire.runtime.norfab.serve.agenda import Agenda
from specwire.runtime.norfab.serve.order import Work


def step(number: int) -> Fetch:
    return Fetch(number, "j1", "w1")


def test_one_action_is_performed_at_once_where_nothing_waits() -> None:
    done: list[Work] = []
    Agenda(done.append).add_one(step(1))
    assert done == [step(1)]


def test_what_comes_of_an_action_is_performed_after_those_that_wait() -> None:
    """Of a single one, too, and whether it is one action or several that come of it."""

    async def story() -> None:
        done: list[Work] = []

        def do(action: Work) -> None:
            done.append(action)
            if action == step(1):
                agenda.add([step(4), step(5)])
                agenda.add_one(step(6))

        agenda = Agenda(do)
        agenda.add([step(1), step(2), step(3)])
        assert done == [step(number) for number in (1, 2, 3, 4, 5, 6)]
        done.clear()
        agenda.add_one(step(1))
        agenda.add_one(step(7))
        await asyncio.sleep(0)
        assert done == [step(number) for number in (1, 4, 5, 6, 7)]

    asyncio.run(story())


def test_a_fault_in_one_action_costs_no_other() -> None:
    async def story() -> None:
        done: list[Work] = []

        def do(action: Work) -> None:
            if action == step(1):
                agenda.add_one(step(2))
                raise ValueError("ours")
            done.append(action)

        agenda = Agenda(do)
        with pytest.raises(ValueError, match="ours"):
            agenda.add_one(step(1))
        await asyncio.sleep(0)
        agenda.add_one(step(3))
        assert done == [step(2), step(3)]

    asyncio.run(story())


def test_once_closed_nothing_is_performed() -> None:
    done: list[Work] = []
    agenda = Agenda(done.append)
    agenda.close()
    agenda.add_one(step(1))
    agenda.add([step(2)])
    assert done == []
