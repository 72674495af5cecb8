"""What goes wrong in a scenario, and how the instance gets over it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from specwire.runtime.flux.simulate.agenda import Agenda
from specwire.runtime.flux.simulate.loads import Loads, Pending
from specwire.runtime.flux.simulate.meter import Meter
from specwire.runtime.flux.simulate.network import Network
from specwire.runtime.flux.simulate.ranks import choose_ranks
from specwire.runtime.flux.simulate.report import FaultReport
from specwire.runtime.flux.simulate.scenario import Hang, Kill, Partition, Scenario

Fault = Kill | Hang | Partition


class Suffered:
    """A fault that has begun."""

    def __init__(self, fault: Fault, brokers: int, pending: Pending) -> None:
        self.fault, self.brokers, self.pending = fault, brokers, pending

    def report(self, meter: Meter) -> FaultReport:
        """Return how it went."""
        at_s, pending = self.fault.at_s, self.pending
        noticed_s = first(meter.missing, at_s)
        full_s = None if noticed_s is None else first(meter.full, at_s + noticed_s)
        return FaultReport(
            type(self.fault).__name__.lower(),
            at_s,
            self.brokers,
            pending.number,
            None if pending.answered_s is None else pending.answered_s - at_s,
            pending.failed,
            None if pending.failed_s is None else pending.failed_s - at_s,
            noticed_s,
            None if noticed_s is None or full_s is None else noticed_s + full_s,
            first(meter.complete, at_s),
        )


def first(times: Sequence[float], since: float) -> float | None:
    """Return the first of `times` from `since` on, counted from there."""
    return next((time - since for time in times if time >= since), None)


class Faults:
    """All faults of a scenario."""

    def __init__(self, agenda: Agenda, network: Network, loads: Loads, meter: Meter, random: Random) -> None:
        self._agenda, self._network, self._loads, self._meter = agenda, network, loads, meter
        self._random = random
        self._suffered: list[Suffered] = []

    def plan(self, scenario: Scenario) -> None:
        """Let every fault begin when it shall."""
        faults: tuple[Fault, ...] = (*scenario.kill, *scenario.hang, *scenario.partition)
        for fault in faults:
            ranks = choose_ranks(fault.ranks, self._network.settings.tree, self._random)
            self._agenda.at(fault.at_s, self._begin, fault, ranks)

    def reports(self) -> tuple[FaultReport, ...]:
        """Return how each fault went, in the order of their beginnings."""
        return tuple(suffered.report(self._meter) for suffered in self._suffered)

    def _begin(self, fault: Fault, ranks: Sequence[int]) -> None:
        if isinstance(fault, Kill):
            self._kill(fault, ranks)
        elif isinstance(fault, Hang):
            hosts = [host for rank in ranks if (host := self._network.hang(rank)) is not None]
            for host in hosts:
                self._agenda.at(self._agenda.now + fault.for_s, self._network.resume, host)
        else:
            self._agenda.at(self._agenda.now + fault.for_s, self._network.cut_off(ranks))
        self._suffered.append(Suffered(fault, len(ranks), self._loads.pending()))

    def _kill(self, fault: Kill, ranks: Sequence[int]) -> None:
        for rank in ranks:
            host = self._network.kill(rank, silently=fault.how == "machine")
            if host is not None:
                self._loads.gone(host)
                self._meter.gone(host)
            if fault.restart_after_s is not None:
                self._agenda.at(self._agenda.now + fault.restart_after_s, self._network.start, rank)
