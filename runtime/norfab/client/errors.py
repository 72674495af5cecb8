"""What a caller of a client is told by an exception. (A job that fails is no exception: see `results`.)"""

from __future__ import annotations

from specwire.runtime.norfab.client.reading import read_response
from specwire.runtime.norfab.client.results import Answer


class ClientClosedError(Exception):
    """The client was closed while somebody waited; jobs that were submitted go on, and can be collected."""


class RequestError(Exception):
    """A request to the broker was refused, or not answered in time; `code` is its status, `str()` says why."""

    def __init__(self, what: str, answer: Answer) -> None:
        self.code = answer.code
        why = read_response(answer.body).error or f"the broker says {answer.code}"
        super().__init__(f"{what}: {why}")


class UnknownJobError(LookupError):
    """No such job is known here, and without its service nobody else can be asked."""
