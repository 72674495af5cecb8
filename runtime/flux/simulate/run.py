"""Put a simulation together, and run it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

import msgspec

from specwire.runtime.flux.config import Settings
from specwire.runtime.flux.simulate.agenda import Agenda
from specwire.runtime.flux.simulate.durations import drawing
from specwire.runtime.flux.simulate.faults import Faults
from specwire.runtime.flux.simulate.host import Host
from specwire.runtime.flux.simulate.loads import Loads, subscribe
from specwire.runtime.flux.simulate.meter import Meter
from specwire.runtime.flux.simulate.network import Network
from specwire.runtime.flux.simulate.ranks import choose_ranks
from specwire.runtime.flux.simulate.report import Report
from specwire.runtime.flux.simulate.scenario import Publication, Scenario

PROGRESS_S = 1.0
"""Virtual time from one word of progress to the next."""


def simulate(
    settings: Settings,
    scenario: Scenario,
    *,
    through_wire: bool = False,
    on_progress: Callable[[float], None] = lambda now: None,
) -> Report:
    """Run a scenario, and return what it comes to.

    Args:
        settings: those of the instance; the scenario's times take the place of its times.
        through_wire: whether every message between brokers is encoded and decoded.
        on_progress: called with the virtual time now and then.

    Raises:
        ValueError: the scenario names ranks that are not there.
    """
    with without_collection():
        simulation = Simulation(_timed(settings, scenario), scenario, through_wire=through_wire)
        return simulation.run(on_progress)


@contextmanager
def without_collection() -> Iterator[None]:
    """Leave the search for cycles out: brokers are cycles, there are many, and hardly any goes before the end."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Simulation:
    """The parts of one run.

    Each part draws from a source of its own, so that one more request does not change who is killed.
    """

    def __init__(self, settings: Settings, scenario: Scenario, *, through_wire: bool) -> None:
        self.scenario, self.tree = scenario, settings.tree
        self.agenda = Agenda()
        self.loads = Loads(self.agenda, self.tree, self._random("loads"))
        self.meter = Meter(self.agenda, self.tree, self.loads)
        drawn = self._random("services")
        services = {
            service.name: (
                drawing(service.answer_s, drawn),
                frozenset(choose_ranks(service.ranks, self.tree, drawn)),
            )
            for service in scenario.service
        }
        self.network = Network(
            self.agenda,
            settings,
            scenario,
            self._random("links"),
            self.meter,
            services,
            through_wire=through_wire,
        )
        self.faults = Faults(self.agenda, self.network, self.loads, self.meter, self._random("faults"))

    def run(self, on_progress: Callable[[float], None]) -> Report:
        """Let the time of the scenario pass."""
        scenario = self.scenario
        self._plan_start()
        self.loads.plan(self.network, scenario.rpc, scenario.duration_s)
        for publication in scenario.event:
            self._plan_publication(publication)
        self.faults.plan(scenario)
        while self.agenda.now < scenario.duration_s:
            self.agenda.run(min(self.agenda.now + PROGRESS_S, scenario.duration_s))
            on_progress(self.agenda.now)
        return self._report()

    def _random(self, part: str) -> Random:
        return Random(f"{self.scenario.seed} {part}")

    def _plan_start(self) -> None:
        start, draw = self.scenario.start, drawing(self.scenario.start.delay_s, self._random("start"))
        for rank in range(self.tree.size):
            at = draw() + start.level_s * self.tree.level(rank)
            self.agenda.at(at, self.network.start, rank)

    def _plan_publication(self, publication: Publication) -> None:
        subscribers = publication.subscribers
        if subscribers is not None:
            for rank in choose_ranks(subscribers, self.tree, self._random("subscribers")):
                self.agenda.at(publication.at_s, self._subscribe, rank, publication.topic)
        for number in range(publication.count):
            self.agenda.at(publication.at_s + number * publication.every_s, self._publish, publication)

    def _subscribe(self, rank: int, prefix: str) -> None:
        if (host := self.network.hosts[rank]) is not None:
            subscribe(self.network, host, prefix)

    def _publish(self, publication: Publication) -> None:
        host = self.network.hosts[publication.rank]
        if host is not None:
            self.network.take(host, self._publish_now, host, publication.topic)

    def _publish_now(self, host: Host, topic: str) -> None:
        self.network.perform(host, host.engine.publish(topic, None, self.agenda.now))

    def _report(self) -> Report:
        tree, scenario, levels = self.tree, self.scenario, self.meter.levels()
        return Report(
            scenario.title,
            tree.size,
            tree.fanout,
            tree.height,
            scenario.seed,
            scenario.duration_s,
            self.meter.start(),
            self.loads.reports(),
            self.meter.events(),
            self.faults.reports(),
            levels,
            dict(sorted(self.meter.told_kinds.items())),
            sum(level.received for level in levels),
        )


def _timed(settings: Settings, scenario: Scenario) -> Settings:
    """Return `settings` with the times that a scenario gives."""
    given = {name: time for name, time in msgspec.structs.asdict(scenario.timers).items() if time is not None}
    return msgspec.structs.replace(settings, timers={**settings.timers, **given})
