"""A peer of the real norfab package: a script for the Python of an environment that has it, started by `norfab_real`.

    python norfab_real_peer.py broker FOLDER ENDPOINT
    python norfab_real_peer.py worker FOLDER ENDPOINT NAME SERVICE
    python norfab_real_peer.py client FOLDER ENDPOINT NAME

It says what happens in lines of JSON. A client does what its input says: ``{"call": METHOD, "kwargs": {…}}`` a line. It ends
with its input. Its security is off: whom a CURVE key belongs to is tested elsewhere.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from typing import Any


def say(**said: Any) -> None:
    """Write a line of JSON."""
    print(json.dumps(said), flush=True)


def make_inventory(folder: str, endpoint: str) -> Any:
    """Return an inventory without security; the broker gives its workers a setting from it."""
    data = {
        "broker": {"endpoint": endpoint, "zmq_auth": False},
        "workers": {"*": [{"colour": "green"}]},
        "logging": {"log_events": False},
    }
    return import_module("norfab.core.inventory").NorFabInventory(data=data, base_dir=folder)


def run_broker(ended: threading.Event, folder: str, endpoint: str) -> None:
    """Serve until the input ends."""
    broker = import_module("norfab.core.broker").NFPBroker(endpoint, ended, make_inventory(folder, endpoint))
    say(endpoint=broker.socket.last_endpoint.decode())
    broker.mediate()


def run_worker(ended: threading.Event, folder: str, endpoint: str, name: str, service: str) -> None:
    """Offer `add`, `slow`, `noisy` and `broken` until the input ends."""
    module, models = import_module("norfab.core.worker"), import_module("norfab.models")

    def add(self: Any, a: int, b: int) -> Any:
        return models.Result(result=a + b)

    def slow(self: Any, seconds: float) -> Any:
        time.sleep(seconds)
        return models.Result(result="slept")

    def noisy(self: Any, job: Any, count: int) -> Any:
        for number in range(count):
            job.event(f"step {number}")
        return models.Result(result=count)

    def broken(self: Any) -> Any:
        raise RuntimeError("it is broken")

    def colour(self: Any) -> Any:
        return models.Result(result=self.load_inventory().get("colour"))

    for task in (add, slow, noisy, broken, colour):
        task.__annotations__ = {}
    tasks = {
        task.__name__: module.Task(fastapi=False, mcp=False)(task)
        for task in (add, slow, noisy, broken, colour)
    }
    kind = type("RealWorker", (module.NFPWorker,), tasks)
    worker = kind(make_inventory(folder, endpoint), endpoint, service, name, ended)
    say(worker=name)
    worker.work()


def run_client(ended: threading.Event, folder: str, endpoint: str, name: str) -> None:
    """Do what the input says."""
    client = import_module("norfab.core.client").NFPClient(make_inventory(folder, endpoint), endpoint, name)
    say(client=name)
    for line in sys.stdin:
        order = json.loads(line)
        called = time.perf_counter()
        try:
            returned = attrgetter(order["call"])(client)(**order["kwargs"])
        except (TypeError, ValueError, OSError, RuntimeError) as error:
            say(raised=repr(error))
            continue
        say(returned=returned, seconds=time.perf_counter() - called)
    client.destroy()
    ended.set()


RUN: dict[str, Callable[..., None]] = {"broker": run_broker, "worker": run_worker, "client": run_client}


def main(role: str, *given: str) -> None:
    """Run the peer of this role."""
    ended = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        ended.set()

    if role != "client":
        threading.Thread(target=wait_for_end, daemon=True).start()
    RUN[role](ended, *given)


if __name__ == "__main__":
    main(*sys.argv[1:])
