"""Kill -9 of broker, workers and clients at any moment: every acknowledged job ends, with a result or with a cause.

A short run with every test, and a long one (`make soak`) with the count in SPECWIRE_CHAOS_JOBS.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

import pytest

from tests.integration.norfab_chaos import Chaos

JOBS = int(os.environ.get("SPECWIRE_CHAOS_JOBS", "60"))
SEED = int(os.environ.get("SPECWIRE_CHAOS_SEED", "1"))
LONG = JOBS > 1000
DEADLINE_S = 110.0 + JOBS * 0.5


@pytest.mark.peers
def test_every_job_is_accounted_for_whoever_is_killed() -> None:
    """No job is lost, none ends twice differently, and none runs twice unless its result says so."""
    with tempfile.TemporaryDirectory(prefix="chaos-") as name:  # a path that is short enough for ipc
        chaos = Chaos(
            Path(name),
            f"ipc://{name}/b",
            workers=4 if LONG else 2,
            clients=3 if LONG else 1,
            jobs=JOBS,
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
        assert sum(kills.values()) >= 3
