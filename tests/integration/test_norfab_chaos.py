"""Kill -9 of broker, workers and clients at any moment: every acknowledged job ends, with a result or with a cause.

A short run with every test, and a long one (`make soak`) with the count in SPECWIRE_CHAOS_JOBS.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.integration.norfab_chaos import Chaos, faults_of, runs_after_the_end

JOBS = int(os.environ.get("SPECWIRE_CHAOS_JOBS", "60"))
SEED = int(os.environ.get("SPECWIRE_CHAOS_SEED", "1"))
LONG = JOBS > 1000
DEADLINE_S = 110.0 + JOBS * 0.5


@pytest.mark.peers
@pytest.mark.parametrize(("in_flight", "jobs"), [(24, JOBS), (1, JOBS // 5 if LONG else JOBS // 2)])
def test_every_job_is_accounted_for_whoever_is_killed(in_flight: int, jobs: int) -> None:
    """No job is lost, none has two different ends, none runs after its end, and none twice unless its result says so."""
    with tempfile.TemporaryDirectory(prefix="chaos-") as name:  # a path that is short enough for ipc
        chaos = Chaos(
            Path(name),
            f"ipc://{name}/b",
            workers=4 if LONG else 2,
            clients=3 if LONG else 1,
            jobs=jobs,
            in_flight=in_flight,
            seed=SEED,
        )

        async def run() -> None:
            async with asyncio.timeout(DEADLINE_S):
                if LONG:
                    await chaos.run(every=40, pauses_s=(0.0, 0.1, 0.5, 5.0), freezes=0.2)
                else:
                    await chaos.run(every=10, pauses_s=(0.0, 0.2))

        try:
            asyncio.run(run())
        except TimeoutError:
            words = "\n".join(f"{peer.name}: {peer.words()}" for peer in chaos.peers)
            pytest.fail(f"not all jobs have ended: {chaos.account()}\n{words}")
        kinds, faults = chaos.account()
        assert faults == []
        kills = {peer.name: peer.kills for peer in chaos.peers}
        freezes = {peer.name: peer.freezes for peer in chaos.peers}
        print(f"seed {SEED}: {dict(kinds)}; killed: {kills}; frozen: {freezes}")
        assert sum(kinds.values()) == sum(chaos.jobs.values())
        assert sum(kills.values()) >= 1


def part(attempt: int = 1, cause: str = "", result: str | None = "u") -> dict[str, Any]:
    """Return one worker's part of the end of the job u."""
    return {"failed": bool(cause), "cause": cause, "attempt": attempt, "result": None if cause else result}


@pytest.mark.parametrize(
    ("parts", "runs", "fault"),
    [
        ({"w0": part()}, ["u w0"], ""),
        ({"w0": part(), "w1": part(cause="w1 is lost")}, ["u w0"], ""),
        ({"w0": part(attempt=2)}, ["u w0", "u w1"], ""),
        ({"w0": part(attempt=2)}, ["u w0", "u w0"], ""),
        ({}, [], "neither a result nor a cause"),
        ({"w0": part(result="v")}, ["u w0"], "the result of another job"),
        ({"w0": part() | {"failed": True}}, ["u w0"], "failed without a cause"),
        ({"w0": part()}, ["u w0", "u w0"], "w0 ran it 2 times"),
        ({"w0": part()}, ["u w0", "u w1"], "it ran at"),
        ({"w0": part()}, ["v w0"], "nobody ran it"),
    ],
)
def test_the_account_finds_what_must_not_be(parts: dict[str, Any], runs: list[str], fault: str) -> None:
    outcome = {"ended": True, "error": "", "parts": parts}
    found = faults_of("u", outcome, Counter(runs))
    assert found == [] if not fault else any(fault in words for words in found), found


def test_the_account_finds_a_run_after_the_end() -> None:
    runs = [["u", "w0", "1.5"], ["u", "w1", "2.5"], ["v", "w0", "9.0"]]
    assert runs_after_the_end(runs, {"u": 2.0}) == ["u ran again at w1, after its end was acknowledged"]
    assert runs_after_the_end(runs, {"u": 3.0}) == []
