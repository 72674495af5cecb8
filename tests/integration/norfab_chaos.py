"""A broker, workers and clients as processes that are killed or frozen at any moment and go on again, and an account of all jobs.

When something is done to somebody is counted in jobs that have ended, who it is and what comes from a seed. So a slow machine has
the same kills as a fast one, if not at the same instructions.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.integration.norfab_chaos_peers import SERVICE, read_log

ROOT = Path(__file__).parents[2]
NORFAB = [sys.executable, "-m", "specwire.runtime.cli.main", "norfab"]
LOOK_S = 0.02


class Party:
    """One party: a process now, and the one after it is killed."""

    def __init__(self, name: str, command: list[str], folder: Path) -> None:
        self.name, self._command, self._said = name, command, folder / f"{name}.err"
        self._process: asyncio.subprocess.Process | None = None
        self.kills = self.freezes = 0

    async def start(self) -> None:
        """Start it."""
        with self._said.open("ab") as said:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=said, stderr=said
            )

    async def kill(self) -> None:
        """End it as `kill -9` does."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def freeze(self, seconds: float) -> None:
        """Stop it where it is for so long, as seen from outside: it holds everything, and does nothing."""
        assert self._process is not None
        process = self._process
        process.send_signal(signal.SIGSTOP)
        self.freezes += 1
        await asyncio.sleep(seconds)
        if process.returncode is None:
            process.send_signal(signal.SIGCONT)

    @property
    def status(self) -> int | None:
        """How it ended by itself; None while it runs."""
        assert self._process is not None
        return self._process.returncode

    def words(self) -> str:
        """Return the last that it said."""
        return "".join(self._said.read_text(errors="replace").splitlines(keepends=True)[-30:])


class Chaos:
    """All parties, and what they wrote down.

    Args:
        in_flight: jobs that a client has under way together.
    """

    def __init__(
        self,
        folder: Path,
        endpoint: str,
        *,
        workers: int,
        clients: int,
        jobs: int,
        in_flight: int,
        seed: int,
    ) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        names = [f"w{number}" for number in range(workers)]
        self.broker = Party(
            "broker",
            [
                *NORFAB,
                "broker",
                "--insecure",
                "--endpoint",
                endpoint,
                "--folder",
                str(folder / "broker"),
                "--keepalive",
                "0.5",
            ],
            folder,
        )
        self.workers = [self._worker(name, endpoint) for name in names]
        self.jobs = {f"c{number}": len(range(number, jobs, clients)) for number in range(clients)}
        self.clients = [
            Party(
                name,
                [
                    sys.executable,
                    "-m",
                    "tests.integration.norfab_chaos_peers",
                    str(folder),
                    endpoint,
                    name,
                    str(count),
                    ",".join(names),
                    str(in_flight),
                ],
                folder,
            )
            for name, count in self.jobs.items()
        ]
        self._delayed: list[asyncio.Task[None]] = []

    def _worker(self, name: str, endpoint: str) -> Party:
        plugin = "tests.integration.norfab_chaos_peers:Chaos"
        return Party(
            name,
            [
                *NORFAB,
                "worker",
                "--insecure",
                "--service",
                SERVICE,
                "--plugin",
                plugin,
                "--name",
                name,
                "--broker",
                endpoint,
                "--folder",
                str(self.folder / name),
                "--concurrency",
                "4",
            ],
            self.folder,
        )

    @property
    def peers(self) -> list[Party]:
        """All of them."""
        return [self.broker, *self.workers, *self.clients]

    async def run(self, *, every: int, pauses_s: tuple[float, ...], freezes: float = 0.0) -> None:
        """Start all, kill or freeze one at once and whenever so many more jobs have ended, and wait for all clients.

        Args:
            pauses_s: how long somebody may be dead before the next start, or frozen.
            freezes: the part of cases in which somebody is frozen and not killed.
        """
        try:
            for peer in self.peers:
                await peer.start()
            harmed_at = -every  # a quick machine may be through before the next time
            while not all(client.status == 0 for client in self.clients):
                await asyncio.sleep(LOOK_S)
                self._look_after()
                ended = sum(len(self._read(client)[1]) for client in self.clients)
                if ended - harmed_at >= every and ended < sum(self.jobs.values()):
                    harmed_at = ended
                    await self._harm_one(self.random.choice(pauses_s), self.random.random() < freezes)
        finally:
            for task in self._delayed:
                task.cancel()
            await asyncio.gather(*self._delayed, return_exceptions=True)
            for peer in self.peers:
                await peer.kill()

    def _read(self, client: Party) -> tuple[set[str], dict[str, list[str]], dict[str, float]]:
        return read_log(self.folder / f"{client.name}.log")

    def _look_after(self) -> None:
        """Nobody may end by itself but clients that are through."""
        for task in self._delayed:
            if task.done():
                task.result()
        for peer in self.peers:
            if (
                peer.status is not None
                and peer.status != -9
                and (peer not in self.clients or peer.status != 0)
            ):
                raise AssertionError(f"{peer.name} ended by itself with {peer.status}:\n{peer.words()}")

    async def _harm_one(self, pause_s: float, freeze: bool) -> None:
        victims = [peer for peer in self.peers if peer.status is None]
        victim = self.random.choice([*victims, self.broker] if self.broker in victims else victims)
        if freeze:
            self._delayed.append(asyncio.create_task(victim.freeze(pause_s)))
        else:
            victim.kills += 1
            await victim.kill()
            self._delayed.append(asyncio.create_task(_start_later(victim, pause_s)))

    # --- the account

    def account(self) -> tuple[Counter[str], list[str]]:
        """Return how jobs ended, by kind, and everything that must not be."""
        kinds: Counter[str] = Counter()
        faults: list[str] = []
        lines = [line.split(" ") for line in (self.folder / "runs").read_text().splitlines()]
        runs = Counter(f"{uuid} {worker}" for uuid, worker, _ in lines)
        for client in self.clients:
            acknowledged, ended, ended_at = self._read(client)
            faults += runs_after_the_end(lines, ended_at)
            for uuid in sorted(acknowledged - set(ended)):
                faults.append(f"{uuid} was acknowledged, and has no end")
            for uuid, ends in ended.items():
                outcomes = [json.loads(end) for end in ends]
                if any(outcome != outcomes[0] for outcome in outcomes):
                    faults.append(f"{uuid} has two ends: {ends}")
                kinds[_kind(outcomes[0])] += 1
                faults += [f"{uuid}: {fault}: {ends[0]}" for fault in faults_of(uuid, outcomes[0], runs)]
            missing = self.jobs[client.name] - len(ended)
            if missing:
                faults.append(f"{client.name}: {missing} jobs have no end")
        return kinds, faults


def runs_after_the_end(runs: list[list[str]], ended_at: dict[str, float]) -> list[str]:
    """Return a fault for each run (uuid, worker, time) of a job that began after a client got its end."""
    return [
        f"{uuid} ran again at {worker}, after its end was acknowledged"
        for uuid, worker, at in runs
        if float(at) > ended_at.get(uuid, float("inf"))
    ]


async def _start_later(peer: Party, pause_s: float) -> None:
    await asyncio.sleep(pause_s)
    await peer.start()


def _kind(outcome: dict[str, Any]) -> str:
    parts = outcome["parts"].values()
    if outcome["error"] or any(part["failed"] for part in parts):
        return "failed"
    return "given again" if any(part["attempt"] > 1 for part in parts) else "done"


def faults_of(uuid: str, outcome: dict[str, Any], runs: Counter[str]) -> list[str]:
    """Return what is wrong with the end of one job."""
    wrong = []
    check: Callable[[bool, str], None] = lambda good, words: None if good else wrong.append(words)
    parts = outcome["parts"]
    check(outcome["ended"], "it has not ended")
    check(bool(parts) or bool(outcome["error"]), "neither a result nor a cause")
    for name, part in parts.items():
        check(not part["failed"] or bool(part["cause"]), f"{name} failed without a cause")
        check(part["failed"] or part["result"] == uuid, f"{name} has the result of another job")
    ran = {line.split(" ")[1]: count for line, count in runs.items() if line.split(" ")[0] == uuid}
    again = sum(part["attempt"] - 1 for part in parts.values())
    for name, count in ran.items():
        check(count == 1 or again >= count - 1, f"{name} ran it {count} times, and nobody says so")
    check(sum(ran.values()) <= max(len(parts), 1) + again or bool(outcome["error"]), f"it ran at {ran}")
    done = [name for name, part in parts.items() if not part["failed"]]
    check(not done or bool(ran), f"{done} have results, and nobody ran it")
    return wrong
