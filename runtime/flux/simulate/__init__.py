"""A whole instance in one process: the real broker engines under a virtual clock.

`simulate` runs a `Scenario` and returns a `Report`. Nothing in it waits: the agenda jumps from one thing that happens
to the next. Two runs with the same scenario and seed give the same report.

What is real: every broker is a `BrokerEngine`, with each message that it would send and each deadline that it would
have. What is a model is everything below it:

- A connection is TCP: in order, and never a message that is missing in the middle. Each message takes a latency. A
  message that is lost comes later, by the time of its retransmissions; one that is lost again and again for
  `GIVE_UP_S` ends the connection, and both ends hear of it.
- A killed process has its connections closed by the system: neighbours hear of it a latency later, behind what was on
  the way. A machine that dies, or that is cut off, is silent: who sends to it finds out `GIVE_UP_S` later.
- A broker that lost its parent comes back after the delays of the real shell (`Backoff`), under a fresh uuid.
- A broker takes one message after the other, if the scenario says what each costs.
- Clients and services are at their broker's side: no time passes between them and the broker.

Not modelled: what limits the queues of a link (`Backlog`), and the size of messages.
"""

from __future__ import annotations

from specwire.runtime.flux.simulate.report import Report
from specwire.runtime.flux.simulate.run import simulate
from specwire.runtime.flux.simulate.scenario import Scenario
from specwire.runtime.flux.simulate.scenario_file import ScenarioError, load_scenario

__all__ = ["Report", "Scenario", "ScenarioError", "load_scenario", "simulate"]
