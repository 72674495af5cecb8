"""The workers of a broker: who is registered for which service, who has room, and who is silent.

A worker is known by its name, which is its routing id. It registers with READY and is gone when it says DISCONNECT,
when it is sent one, or when nothing is heard of it for `Settings.expiry_s`. Its tasks are in `tasks` up to a window,
beyond that in `queue`. What belongs to a name that is not registered at present stands in `Registry.absent`.
"""

from __future__ import annotations

from collections.abc import Iterator

from specwire.runtime.norfab.fairness import FairQueue
from specwire.runtime.norfab.job import Job, Task
from specwire.runtime.norfab.limits import Settings

MAX_ANNOUNCED_OCTETS = 64 * 1024 * 1024
"""What peers said that they manage and did not register yet."""

MEASURED_S = 0.002
"""Less time says nothing of how quick a worker is: results come together."""


class Worker:
    """One registered worker.

    Attributes:
        registration: a number that no other registration at this broker has.
        tasks: by uuid, what it has or is about to get.
        queue: what it will get when it has ended some of them.
        window: how many tasks it may have; see `Registry.resize`.
        ended, measured_at: how many it has ended since when.
    """

    __slots__ = (
        "ended",
        "keepalives_in",
        "keepalives_out",
        "measured_at",
        "name",
        "peer",
        "queue",
        "ready_at",
        "registration",
        "resources",
        "seen_at",
        "sent_at",
        "service",
        "tasks",
        "user",
        "window",
    )

    def __init__(
        self, name: str, peer: bytes, service: str, user: str, registration: int, now: float, window: int
    ) -> None:
        self.name, self.peer, self.service, self.user = name, peer, service, user
        self.registration = registration
        self.ready_at = self.seen_at = self.sent_at = now
        self.resources: frozenset[str] = frozenset()
        self.tasks: dict[str, Task] = {}
        self.queue: FairQueue[Task] = FairQueue()
        self.keepalives_in = self.keepalives_out = 0
        self.window, self.ended, self.measured_at = window, 0, now

    def manages(self, resources: tuple[str, ...]) -> bool:
        """Whether a job about `resources` concerns it: no resources concern everyone."""
        return not resources or not self.resources.isdisjoint(resources)


class Service:
    """The workers of one service, and the jobs that wait for one.

    Attributes:
        idle: workers without a task; `roomy`: those with room for another. Both in the order of their turn.
        any_queue: jobs that whichever worker has room shall get.
        unserved: jobs for workers none of which is here.
    """

    __slots__ = ("any_queue", "idle", "name", "roomy", "unserved", "workers")

    def __init__(self, name: str) -> None:
        self.name = name
        self.workers: dict[str, Worker] = {}
        self.idle: dict[str, Worker] = {}
        self.roomy: dict[str, Worker] = {}
        self.any_queue: FairQueue[Job] = FairQueue()
        self.unserved: dict[str, Job] = {}

    @property
    def waiting(self) -> int:
        """How many jobs wait here."""
        return self.any_queue.size + len(self.unserved)


class Registry:
    """All workers and services of the broker."""

    __slots__ = (
        "_announced",
        "_announced_octets",
        "_registrations",
        "absent",
        "services",
        "workers",
    )

    def __init__(self) -> None:
        self._registrations = 0
        self.workers: dict[str, Worker] = {}
        self.services: dict[str, Service] = {}
        self.absent: dict[str, dict[str, Task]] = {}
        self._announced: dict[bytes, tuple[frozenset[str], int]] = {}
        self._announced_octets = 0

    def service(self, name: str) -> Service:
        """Return the service, made where it is new."""
        found = self.services.get(name)
        if found is None:
            found = self.services[name] = Service(name)
        return found

    def tidy(self, name: str) -> None:
        """Forget a service that nobody offers and nobody waits for."""
        service = self.services.get(name)
        if service is not None and not service.workers and not service.waiting:
            del self.services[name]

    def register(self, name: str, peer: bytes, service: str, user: str, now: float, window: int) -> Worker:
        """Make the worker known."""
        self._registrations += 1
        worker = Worker(name, peer, service, user, self._registrations, now, window)
        worker.resources = self.take_announced(peer)
        self.workers[name] = self.service(service).workers[name] = worker
        self.account(worker)
        return worker

    def announce(self, peer: bytes, resources: frozenset[str], octets: int) -> None:
        """Note what a peer manages that has not registered yet; the one noted longest ago makes room."""
        self.take_announced(peer)
        if resources:
            self._announced[peer] = (resources, octets)
            self._announced_octets += octets
        while self._announced_octets > MAX_ANNOUNCED_OCTETS:
            self.take_announced(next(iter(self._announced)))

    def take_announced(self, peer: bytes) -> frozenset[str]:
        """Take out what the peer said that it manages."""
        resources, octets = self._announced.pop(peer, (frozenset[str](), 0))
        self._announced_octets -= octets
        return resources

    def renew(self, worker: Worker, now: float) -> None:
        """Count a further READY of a worker that is registered: it may not know what it was sent before."""
        self._registrations += 1
        worker.registration, worker.ready_at = self._registrations, now

    def remove(self, worker: Worker) -> None:
        """Take the worker out."""
        service = self.services[worker.service]
        for place in (service.workers, service.idle, service.roomy, self.workers):
            place.pop(worker.name, None)
        self.tidy(worker.service)

    def find(self, name: str, service: str) -> Worker | None:
        """Return the worker of this name if it offers this service."""
        worker = self.workers.get(name)
        return worker if worker is not None and worker.service == service else None

    def hand(self, worker: Worker, task: Task) -> None:
        """Add one to the worker's tasks."""
        worker.tasks[task.job.uuid] = task
        count = len(worker.tasks)
        if count == 1 or count >= worker.window:
            self.account(worker)

    def take_back(self, worker: Worker, uuid: str) -> None:
        """Take one of the worker's tasks."""
        del worker.tasks[uuid]
        count = len(worker.tasks)
        if not count or count >= worker.window - 1:
            self.account(worker)

    def resize(self, worker: Worker, settings: Settings, now: float) -> None:
        """Fit the worker's window to how many tasks it has ended since it was done last.

        Each time that the window is filled the worker may wait for the way there and back, so a quick one is given more
        at a time: what it ends within a moment, after which each client has its turn.
        """
        elapsed = now - worker.measured_at
        if elapsed < MEASURED_S:
            return
        quick = round(worker.ended / elapsed * settings.ahead_s)
        window = max(settings.first_window, min(quick, settings.window))
        worker.ended, worker.measured_at = 0, now
        if window != worker.window:
            worker.window = window
            self.account(worker)

    def account(self, worker: Worker) -> None:
        """Note how much the worker has to do, after any change of its tasks."""
        service, name, count = self.services[worker.service], worker.name, len(worker.tasks)
        if count:
            service.idle.pop(name, None)
        elif name not in service.idle:
            service.idle[name] = worker
        if count >= worker.window:
            service.roomy.pop(name, None)
        elif name not in service.roomy:
            service.roomy[name] = worker

    def has_room(self, worker: Worker) -> bool:
        """Whether the worker may be sent another job."""
        return len(worker.tasks) < worker.window

    def pick(self, service: Service, resources: tuple[str, ...], but: str = "") -> Worker | None:
        """Return whose turn it is among those with nothing to do, else among those with room; None without any.

        Among those that manage a resource it is the one with the least to do, room or not. The worker named `but` is
        left out.
        """
        if resources:
            fit = [
                worker
                for worker in service.workers.values()
                if worker.manages(resources) and worker.name != but
            ]
            return min(fit, key=lambda worker: len(worker.tasks) + worker.queue.size, default=None)
        for place in (service.idle, service.roomy):
            name = next((name for name in place if name != but), None)
            if name is not None:
                worker = place.pop(name)
                place[name] = worker
                return worker
        return None

    def leave_absent(self, task: Task) -> None:
        """Put the task where its worker finds it when it registers."""
        self.absent.setdefault(task.worker, {})[task.job.uuid] = task

    def awaits(self, task: Task) -> bool:
        """Whether the task waits for its worker to register."""
        waiting = self.absent.get(task.worker)
        return waiting is not None and waiting.get(task.job.uuid) is task

    def take_absent(self, name: str, service: str) -> Iterator[Task]:
        """Take out what waits for this worker of this service."""
        waiting = self.absent.pop(name, {})
        others = {uuid: task for uuid, task in waiting.items() if task.job.service != service}
        if others:
            self.absent[name] = others
        return (task for task in waiting.values() if task.job.service == service)

    def drop_absent(self, task: Task) -> None:
        """The task waits for its worker no longer."""
        if self.awaits(task):
            waiting = self.absent[task.worker]
            del waiting[task.job.uuid]
            if not waiting:
                del self.absent[task.worker]
