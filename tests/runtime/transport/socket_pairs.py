"""A ROUTER and a DEALER for the tests of messages, with either build of what sends and receives."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar

import pytest
import zmq

from specwire.generated.builds import find_native
from specwire.runtime.transport.messages import BUILD, COPY_LIMIT_OCTETS, PACKAGE, PureMessages, PureTraffic

T = TypeVar("T")
Context = zmq.Context[zmq.Socket[bytes]]

NATIVE: Any = find_native(f"{PACKAGE}._native", BUILD)
NEEDS_NATIVE = pytest.mark.skipif(NATIVE is None, reason="the module is not compiled")
BUILDS = ["pyzmq", pytest.param("native", marks=NEEDS_NATIVE)]
TRANSPORTS = ["inproc", "tcp"]
LARGE = bytes(range(256)) * (COPY_LIMIT_OCTETS // 256)
MAX_FRAMES = 8
DEADLINE_S = 60.0
_places = count()


class Pair:
    """A ROUTER, a DEALER that is connected to it by the name of `peer`, and the messages of each."""

    def __init__(
        self,
        context: Context,
        build: str,
        transport: str = "inproc",
        *,
        high_water: int = 1000,
        guarded: bool = False,
        copied: bool = False,
    ) -> None:
        self.router, self.dealer = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
        self.router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self.dealer.setsockopt(zmq.ROUTING_ID, b"peer")
        for socket in (self.router, self.dealer):
            socket.set_hwm(high_water)
        self.router.bind("tcp://127.0.0.1:*" if transport == "tcp" else f"inproc://messages-{next(_places)}")
        self.dealer.connect(self.router.getsockopt_string(zmq.LAST_ENDPOINT))
        native = build == "native"
        kind, count = (NATIVE.Messages, NATIVE.Traffic) if native else (PureMessages, PureTraffic)
        self.at_server, self.at_client = count(), count()
        self.server = kind(
            self.router, MAX_FRAMES, guarded, copied=copied, traffic=self.at_server, addressed=True
        )
        self.client = kind(self.dealer, MAX_FRAMES, guarded, copied=copied, traffic=self.at_client)


def until(ask: Callable[[], T]) -> T:
    """Ask until there is an answer, and return it."""
    ends_at = time.monotonic() + DEADLINE_S
    while not (answer := ask()):
        assert time.monotonic() < ends_at
        time.sleep(0.0005)
    return answer


def gone(view: Callable[[], object]) -> bool:
    """Whether libzmq and we have let go of what a weak reference is to."""
    if NATIVE is not None:
        NATIVE.take_back()
    return view() is None
