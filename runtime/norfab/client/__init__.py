"""A client of NORFAB: submits jobs, waits for their results, asks a broker how it is.

    from specwire.runtime.norfab.client import BlockingClient

    with BlockingClient("tcp://127.0.0.1:5555") as client:
        print(client.run("fleet", "show_version").values())

`NorfabClient` is the same on asyncio.
"""

from specwire.runtime.norfab.client.blocking import BlockingClient
from specwire.runtime.norfab.client.client import NorfabClient
from specwire.runtime.norfab.client.errors import ClientClosedError, RequestError, UnknownJobError
from specwire.runtime.norfab.client.events import Progress
from specwire.runtime.norfab.client.limits import ClientSettings
from specwire.runtime.norfab.client.records import HistoryEntry
from specwire.runtime.norfab.client.results import Answer, JobError, JobResult, WorkerResult
from specwire.runtime.norfab.client.states import State

__all__ = [
    "Answer",
    "BlockingClient",
    "ClientClosedError",
    "ClientSettings",
    "HistoryEntry",
    "JobError",
    "JobResult",
    "NorfabClient",
    "Progress",
    "RequestError",
    "State",
    "UnknownJobError",
    "WorkerResult",
]
