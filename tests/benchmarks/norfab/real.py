"""Peers of the real norfab, run by the Python of an environment that has it: as `peers`, without a durability.

python real.py broker FOLDER ENDPOINT
python real.py worker FOLDER ENDPOINT NAME
python real.py client FOLDER ENDPOINT
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from time import perf_counter
from typing import Any

SERVICE = "bench"


def make_inventory(folder: str, endpoint: str) -> Any:
    """Return an inventory without security."""
    data = {"broker": {"endpoint": endpoint, "zmq_auth": False}, "logging": {"log_events": False}}
    return import_module("norfab.core.inventory").NorFabInventory(data=data, base_dir=folder)


def say(**said: Any) -> None:
    """Write a line of JSON."""
    print(json.dumps(said), flush=True)


def serve(folder: str, endpoint: str) -> None:
    """Be the broker."""
    module = import_module("norfab.core.broker")
    broker = module.NFPBroker(endpoint, threading.Event(), make_inventory(folder, endpoint))
    say(endpoint=broker.socket.last_endpoint.decode())
    broker.mediate()


def work(folder: str, endpoint: str, name: str) -> None:
    """Be a worker."""
    module, models = import_module("norfab.core.worker"), import_module("norfab.models")

    def noop(self: Any) -> Any:
        return models.Result(result=None)

    noop.__annotations__ = {}
    kind = type("Bench", (module.NFPWorker,), {"noop": module.Task(fastapi=False, mcp=False)(noop)})
    worker = kind(make_inventory(folder, endpoint), endpoint, SERVICE, name, threading.Event())
    say(worker=name)
    worker.work()


def ask(folder: str, endpoint: str) -> None:
    """Be a client."""
    module = import_module("norfab.core.client")
    client = module.NFPClient(make_inventory(folder, endpoint), endpoint, "bench")
    say(client="bench")
    for line in sys.stdin:
        order = json.loads(line)
        say(**measure(client, **order))


def measure(client: Any, jobs: int, together: bool) -> dict[str, Any]:
    """Do jobs; return what each and all took, and how many workers answered each."""
    took: list[float] = []
    answers = 0
    begun = perf_counter()
    if together:
        futures = [client.submit_job(SERVICE, "noop", timeout=300) for _ in range(jobs)]
        answers = sum(len(future.result(timeout=300) or {}) for future in futures)
        took = [perf_counter() - begun]
    else:
        for _ in range(jobs):
            at = perf_counter()
            answers += len(client.run_job(SERVICE, "noop", timeout=300) or {})
            took.append(perf_counter() - at)
    return {"seconds": perf_counter() - begun, "took": took, "answers": answers}


if __name__ == "__main__":
    roles: dict[str, Callable[..., None]] = {"broker": serve, "worker": work, "client": ask}
    roles[sys.argv[1]](*sys.argv[2:])
