"""An instance on one machine: a broker process for each rank, and what they share.

The run directory, which only this user can enter, has the keys, the endpoints of the overlay and the local sockets:

    RUNDIR/keys/instance.key_secret     CURVE keys, made for this instance
    RUNDIR/tree/RANK                    where the children of a rank connect to
    RUNDIR/local-RANK                   where clients connect to

Where guests are allowed they may pass through it to the local sockets, and into nothing else.

Brokers are sessions of their own, so an interrupt at the keyboard does not reach them. Each has one pipe, shared by all, as its
standard input, and ends when nobody holds the other end any more: whatever becomes of this process, none is left
behind, and rank 0 removes the run directory.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from specwire.runtime.flux.errors import FluxError
from specwire.runtime.flux.handle import connect
from specwire.runtime.flux.inquiry import FULL, Health
from specwire.runtime.flux.topology import Tree
from specwire.runtime.observe.place import Place
from specwire.runtime.transport.backoff import Backoff
from specwire.runtime.transport.keys import make_keys

Result = TypeVar("Result")

SETTINGS = ("SPECWIRE_CONFIG", "SPECWIRE_FLUX_BROKER_")
"""How variables begin that set a broker's options: those of an instance are told everything by who starts them."""

KEYS, KEY_NAME = "keys", "instance"
TREE = "tree"
ENDING_S = 10.0
"""How long a broker may take to end when it is asked to; then it is killed."""

ASKING_S, AGAIN_S = 10.0, 0.1
"""How long rank 0 may take to let a client in while it starts, and when it is asked again after a failure."""
TELL_EVERY_S = 10.0
"""How often it is said what is waited for."""

FIRST_RESTART_S, LONGEST_RESTART_S, CALM_S = 0.1, 10.0, 30.0


class BrokerEndedError(Exception):
    """The instance cannot go on without the broker that has ended; `str()` says which, and how."""


class Plan(msgspec.Struct, frozen=True):
    """What is to be started."""

    tree: Tree
    options: tuple[str, ...] = ()
    """Options of `specwire flux broker` that all brokers get."""
    curve: bool = True
    guests: bool = False
    """Other users may connect."""
    restart: bool = False
    """A broker that ends by itself is started again."""
    capture: str | None = None
    metrics: Place | None = None
    """Where rank 0 shows itself; each other rank at a port that is higher by as much as its rank."""


class Instance:
    """All brokers of an instance; `start` and `stop`.

    Args:
        plan: what is to be started.
        say: takes a line for whoever runs the instance.

    Attributes:
        folder: the run directory.
    """

    def __init__(self, plan: Plan, say: Callable[[str], None]) -> None:
        self._plan, self._say = plan, say
        self._brokers: dict[int, asyncio.subprocess.Process] = {}
        self._watching: dict[int, asyncio.Task[None]] = {}

    @property
    def uri(self) -> str:
        """How clients find rank 0."""
        return self.uri_of(0)

    def uri_of(self, rank: int) -> str:
        """How clients find a rank."""
        return f"local://{self.folder}/local-{rank}"

    async def start(self) -> None:
        """Start all brokers and return when the tree is full.

        Raises:
            BrokerEndedError: a broker has ended, and is not to be started again.
            OSError: there can be no run directory, or no process.
        """
        self.folder = _make_folder(guests=self._plan.guests)
        self._lifeline = os.pipe()
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stop_asked = asyncio.Event()
        self._was_full = False
        self._root_listens = asyncio.Event()
        self._health: Health | None = None
        try:
            if self._plan.curve:
                make_keys(self.folder / KEYS, KEY_NAME)
            for rank in range(self._plan.tree.size):
                self._watching[rank] = asyncio.create_task(self._watch(rank))
            await self.until(asyncio.create_task(self._await_full()))
            self._was_full = True
        except BaseException:
            await self.stop()
            raise

    async def until(self, task: asyncio.Future[Result]) -> None:
        """Return when `task` is done; raises BrokerEndedError where the instance ends before it."""
        await asyncio.wait((task, self._ended), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
            return
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await self._ended

    async def stop(self) -> None:
        """End all brokers, each by its own id, and remove the run directory.

        Those below go first, and say goodbye to those above.
        """
        self._stop_asked.set()
        tree = self._plan.tree
        for level in range(tree.height, -1, -1):
            await self._stop_brokers([rank for rank in self._watching if tree.level(rank) == level])
        for descriptor in self._lifeline:
            os.close(descriptor)
        if self._ended.done():
            self._ended.exception()  # it was told, or does not matter any more
        shutil.rmtree(self.folder, ignore_errors=True)

    async def _stop_brokers(self, ranks: Sequence[int]) -> None:
        for rank in ranks:
            self._signal(rank, signal.SIGTERM)
        watching = [self._watching[rank] for rank in ranks]
        if watching:
            _, late = await asyncio.wait(watching, timeout=ENDING_S)
            for rank in ranks:
                if self._watching[rank] in late:
                    self._say(f"rank {rank} did not end within {ENDING_S:g} s, and is killed")
                    self._signal(rank, signal.SIGKILL)
            await asyncio.gather(*watching)

    def _signal(self, rank: int, number: signal.Signals) -> None:
        process = self._brokers.get(rank)
        if process is not None and process.returncode is None:
            process.send_signal(number)

    async def _await_full(self) -> None:
        """Return when rank 0 says that the whole tree is there; one that ends and is started anew is asked again."""
        await self._root_listens.wait()
        telling = asyncio.create_task(self._tell_of_waiting())
        try:
            while True:
                with suppress(FluxError):
                    async with connect(self.uri, timeout_s=ASKING_S) as handle:
                        async for reply in handle.stream("overlay.health", nodeid=0):
                            self._health = reply.read(Health)
                            if self._health.status == FULL:
                                return
                await asyncio.sleep(AGAIN_S)
        finally:
            telling.cancel()

    async def _tell_of_waiting(self) -> None:
        """Say now and then what the tree lacks: where it takes long, something is wrong."""
        while True:
            await asyncio.sleep(TELL_EVERY_S)
            health = self._health
            if health is None:
                self._say("the tree is not full yet: rank 0 does not answer")
            else:
                missing = (
                    f"rank {child.rank} is {child.status}"
                    for child in health.children
                    if child.status != FULL
                )
                self._say(f"the tree is not full yet: {', '.join(missing)}")

    # --- one broker

    async def _watch(self, rank: int) -> None:
        """Run the broker of a rank, over and over where the plan says so."""
        backoff = Backoff(first_s=FIRST_RESTART_S, longest_s=LONGEST_RESTART_S, calm_s=CALM_S)
        clock = asyncio.get_running_loop().time
        while not self._stop_asked.is_set():
            end = await self._run(rank)
            if self._stop_asked.is_set():
                return
            if not self._plan.restart:
                if rank == 0 or not self._was_full:
                    self._give_up(f"the broker of rank {rank} has ended: {end}")
                else:
                    self._say(f"the broker of rank {rank} has ended: {end}; the instance goes on without it")
                return
            self._say(f"the broker of rank {rank} has ended: {end}; it is started again")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop_asked.wait(), backoff.next_try(clock()) - clock())

    async def _run(self, rank: int) -> str:
        """Run the broker of a rank once, and return how it has ended."""
        try:
            process = self._brokers[rank] = await self._spawn(rank)
        except OSError as error:
            return f"there is no process for it ({error.strerror})"
        if self._stop_asked.is_set():
            process.terminate()
        if process.stdout is not None:
            async for _ in process.stdout:
                self._root_listens.set()
        return describe_end(await process.wait())

    def _give_up(self, reason: str) -> None:
        if not self._ended.done():
            self._ended.set_exception(BrokerEndedError(reason))

    async def _spawn(self, rank: int) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # the working directory is not the brokers' to import from
            "-m",
            "specwire.runtime.cli.main",
            "flux",
            "broker",
            *self._arguments(rank),
            stdin=self._lifeline[0],
            stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
            env={name: text for name, text in os.environ.items() if not name.startswith(SETTINGS)},
            start_new_session=True,
        )

    def _arguments(self, rank: int) -> Sequence[str]:
        tree = self._plan.tree
        options: dict[str, object] = {
            "rank": rank,
            "size": tree.size,
            "fanout": tree.fanout,
            "local": self.folder / f"local-{rank}",
        }
        if rank == 0:
            options["rundir"] = self.folder
        if tree.children(rank):
            options["bind"] = self._endpoint(rank)
        if (parent := tree.parent(rank)) is not None:
            options["parent"] = self._endpoint(parent)
        if self._plan.curve:
            options["keys"] = self.folder / KEYS
        if self._plan.capture:
            options["capture"] = self._plan.capture
        if self._plan.metrics is not None:
            options["metrics"] = self._plan.metrics.next(rank)
            if self._plan.metrics.password_file:
                options["metrics-password-file"] = self._plan.metrics.password_file
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        place = self._plan.metrics
        flags = [
            *([] if self._plan.curve else ["--no-curve"]),
            *([] if place is None or place.is_loopback else ["--metrics-anywhere"]),
        ]
        return [*words, *flags, "--until-eof", *self._plan.options]

    def _endpoint(self, rank: int) -> str:
        return f"ipc://{self.folder}/{TREE}/{rank}"


def _make_folder(*, guests: bool) -> Path:
    """Make the run directory; the user's own is closed to guests, so theirs is where all temporary files are."""
    place = None if guests else os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(tempfile.mkdtemp(prefix="specwire-flux-", dir=place))
    for name in (KEYS, TREE):
        (folder / name).mkdir(mode=0o700)
    if guests:
        folder.chmod(0o711)
    return folder


def describe_end(status: int) -> str:
    """Return how a process has ended."""
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
