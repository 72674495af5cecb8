"""The services that are built into a broker. Each module has one."""

from __future__ import annotations

from collections.abc import Mapping

from specwire.runtime.flux.services.attr import AttrService
from specwire.runtime.flux.services.broker import BrokerService
from specwire.runtime.flux.services.event import EventService
from specwire.runtime.flux.services.heartbeat import HeartbeatService
from specwire.runtime.flux.services.kvs import KvsService
from specwire.runtime.flux.services.log import LogService
from specwire.runtime.flux.services.overlay import OverlayService
from specwire.runtime.flux.services.service import Service
from specwire.runtime.flux.services.state_machine import StateMachineService

BUILT_IN: Mapping[str, type[Service]] = {
    "attr": AttrService,
    "broker": BrokerService,
    "event": EventService,
    "heartbeat": HeartbeatService,
    "kvs": KvsService,
    "log": LogService,
    "overlay": OverlayService,
    "state-machine": StateMachineService,
}
"""Every service by its name."""
