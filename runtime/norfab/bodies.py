"""JSON bodies of commands, as deployed peers write and read them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)


class PostBody(msgspec.Struct, frozen=True, gc=False):
    """Body of a POST: a job.

    Attributes:
        resources: only workers that manage one of these get the job.
    """

    task: str = ""
    args: list[msgspec.Raw] | None = None
    kwargs: dict[str, msgspec.Raw] | None = None
    timeout: float | None = None
    resources: tuple[str, ...] = ()

    @property
    def timeout_s(self) -> float | None:
        """Seconds that the client waits; None without a valid value."""
        stated = self.timeout
        return stated if stated is not None and stated > 0 and math.isfinite(stated) else None


class OpenBody(msgspec.Struct, frozen=True):
    """Body of a worker's OPEN.

    Attributes:
        resources: resources that the worker manages.
        name: name that the worker asks about, after it got no answer under it. Our extension.
    """

    resources: tuple[str, ...] = ()
    name: str = ""


class OpenReply(msgspec.Struct, frozen=True):
    """Body of the broker's OPEN.

    Attributes:
        taken: another worker has the name that the worker asked about.
    """

    taken: bool = False


class _EventBody(msgspec.Struct, frozen=True):
    event_type: str = ""


class _Dispatched(msgspec.Struct, frozen=True, gc=False):
    workers: Sequence[str]
    uuid: str
    target: str
    status: str
    service: str
    missing: Sequence[str] | msgspec.UnsetType


_encoder = msgspec.json.Encoder()
_POST = msgspec.json.Decoder(PostBody)
_OPEN = msgspec.json.Decoder(OpenBody)
TAKEN = msgspec.json.encode(OpenReply(taken=True))
_OPEN_REPLY = msgspec.json.Decoder(OpenReply)
_EVENT = msgspec.json.Decoder(_EventBody)
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ANY = msgspec.json.Decoder()


class BodyError(ValueError):
    """A body that is not the JSON it should be."""


def read_post(body: bytes) -> PostBody:
    """Decode the body of a POST; raises BodyError."""
    try:
        return _POST.decode(body)
    except _UNREADABLE as error:
        raise BodyError(f"the body is not a job in JSON: {error}") from None


def read_open_reply(body: bytes) -> OpenReply:
    """Decode the body of a broker's OPEN. Any other body, as other packages send it, is ignored."""
    try:
        return _OPEN_REPLY.decode(body)
    except _UNREADABLE:
        return OpenReply()


def read_open(body: bytes) -> OpenBody:
    """Decode the body of a worker's OPEN, which may be empty; raises BodyError."""
    if not body:
        return OpenBody()
    try:
        return _OPEN.decode(body)
    except _UNREADABLE as error:
        raise BodyError(f"the body of OPEN is not JSON: {error}") from None


def read_event_type(body: bytes) -> str | None:
    """Return the `event_type`, empty where there is none; None where the body is no JSON object."""
    try:
        return _EVENT.decode(body).event_type
    except _UNREADABLE:
        return None


def is_object(body: bytes) -> bool:
    """Whether the body is a JSON object."""
    try:
        _OBJECT.decode(body)
    except _UNREADABLE:
        return False
    return True


def has_entry(body: bytes, worker: str) -> bool:
    """Whether the body is a JSON object with an entry of this worker."""
    try:
        return worker in _OBJECT.decode(body)
    except _UNREADABLE:
        return False


def own_result(body: bytes, worker: str, slot: str, attempt: int) -> bytes | None:
    """Return a worker's result under the name the client was told, or None where it is not JSON.

    Deployed workers send ``{worker: {…}}``, which is passed on as it is. What is said under other names is left out:
    a worker speaks for itself. Any other value becomes the `result` of such an entry. A job that was given to a
    worker more than once says so: `attempt`, and `worker` is who did it.

    What is put into another value is copied as it stands: what can just be read may nest too deep to be written.
    """
    try:
        said = _ANY.decode(body)
    except _UNREADABLE:
        return None
    entry: dict[str, Any]
    if isinstance(said, dict) and isinstance(said.get(worker), dict):
        if len(said) == 1 and attempt == 1 and worker == slot:
            return body
        entry = _OBJECT.decode(_OBJECT.decode(body)[worker])
    else:
        entry = {"result": msgspec.Raw(body), "failed": False, "errors": [], "messages": []}
    if attempt > 1 or worker != slot:
        entry |= {"worker": worker, "attempt": attempt}
    return msgspec.json.encode({slot: entry})


def answer(body: bytes) -> msgspec.Raw | None:
    """Return the body as a value to put into another body; None where it is not JSON."""
    try:
        _ANY.decode(body)
    except _UNREADABLE:
        return None
    return msgspec.Raw(body)


def dispatched(
    uuid: str, target: str, service: str, workers: Sequence[str], missing: Sequence[str] = ()
) -> bytes:
    """Body of 202."""
    return _encoder.encode(
        _Dispatched(workers, uuid, target, "DISPATCHED", service, missing or msgspec.UNSET)
    )


def state(uuid: str, service: str, status: str, worker: str = "") -> bytes:
    """Body of 201 and 300."""
    return _encoder.encode({"worker": worker, "uuid": uuid, "service": service, "status": status})


def refused(uuid: str, target: str, service: str, error: str) -> bytes:
    """Body of a job that fails as a whole, as deployed brokers write it."""
    return msgspec.json.encode(
        {
            "workers": None,
            "uuid": uuid,
            "target": target,
            "status": "FAILED",
            "service": service,
            "error": error,
            "errors": [error],
        }
    )


def failure(uuid: str, service: str, slot: str, task: str, error: str, attempt: int, *, whole: bool) -> bytes:
    """Body that says why a worker's part has no result; `whole` where that is all of the job."""
    entry = {
        "result": None,
        "failed": True,
        "errors": [error],
        "task": task,
        "messages": [],
        "juuid": uuid,
        "resources": [],
        "status": "failed",
        "service": service,
        "attempt": attempt,
    }
    said: dict[str, Any] = {slot: entry}
    if whole:
        said |= {"uuid": uuid, "service": service, "status": "FAILED", "error": error, "errors": [error]}
        said[slot] = entry
    return msgspec.json.encode(said)


def progress(uuid: str, service: str, worker: str, task: str, message: str) -> bytes:
    """Body of an EVENT that the broker itself sends."""
    return msgspec.json.encode(
        {
            "worker": worker,
            "service": service,
            "uuid": uuid,
            "event_type": "progress",
            "message": message,
            "task": task,
            "status": "running",
            "resource": [],
            "severity": "WARNING",
            "timestamp": "",
        }
    )


def names(words: Iterable[str]) -> str:
    """Return the words for a sentence, cut where there are many."""
    listed = list(words)
    return ", ".join(listed[:5]) + (f" and {len(listed) - 5} more" if len(listed) > 5 else "")
