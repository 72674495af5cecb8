"""What the bodies of a broker's messages say. They come from the network: nothing in them is taken for granted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from specwire.runtime.norfab.client.events import Progress

_WORDS = frozenset({"workers", "worker", "uuid", "target", "status", "service", "error", "errors"})
"""Keys of the broker's own bodies: no worker's entry."""

MAX_MESSAGE = 10_000
"""Characters of a progress message that are kept."""


class Said(msgspec.Struct, frozen=True, gc=False):
    """What a response says; `workers` is None where it has no list of them, `entries` are workers' as JSON."""

    readable: bool
    workers: tuple[str, ...] | None = None
    worker: str = ""
    status: str = ""
    error: str = ""
    entries: Mapping[str, bytes] = {}


class _Dispatched(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a broker says when workers have a job, and nothing else."""

    workers: tuple[str, ...]
    uuid: str = ""
    target: str = ""
    status: str = ""
    service: str = ""


_DISPATCHED = msgspec.json.Decoder(_Dispatched)
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_DECODER = msgspec.json.Decoder()
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def read_object(body: bytes) -> dict[str, Any] | None:
    """Return a JSON object, None where the body is none."""
    said = _read(body)
    return said if isinstance(said, dict) else None


def _read(body: bytes | msgspec.Raw) -> Any:
    try:
        return _DECODER.decode(body)
    except _UNREADABLE:
        return None


def read_response(body: bytes, status: int = 0) -> Said:
    """Return what a response says. Entries are not decoded: a result may be large, or nested as deep as it likes.

    Args:
        status: of the response; 202 most often has the same few words.
    """
    if status == 202:
        try:
            usual = _DISPATCHED.decode(body)
        except _UNREADABLE:
            pass
        else:
            return Said(True, usual.workers, status=usual.status)
    try:
        fields = _FIELDS.decode(body)
    except _UNREADABLE:
        return Said(readable=False)
    if _WORDS.isdisjoint(fields):  # nothing but entries of workers
        return Said(True, entries={name: raw for name, raw in _octets(fields) if raw.startswith(b"{")})
    words = {name: _read(fields[name]) for name in _WORDS if name in fields}
    workers = words.get("workers")
    return Said(
        True,
        tuple(name for name in workers if isinstance(name, str)) if isinstance(workers, list) else None,
        _text(words.get("worker")),
        _text(words.get("status")),
        _text(words.get("error")) or "; ".join(_text(item) for item in _list(words.get("errors"))),
        {name: raw for name, raw in _octets(fields) if _is_entry(name, raw, words.get(name))},
    )


def _octets(fields: Mapping[str, msgspec.Raw]) -> Iterator[tuple[str, bytes]]:
    return ((name, bytes(raw)) for name, raw in fields.items())


def _is_entry(name: str, raw: bytes, word: Any) -> bool:
    """Whether it is a worker's: one that is named as one of the broker's words shows it by what is in it."""
    if name in _WORDS:
        return isinstance(word, dict) and ("failed" in word or "result" in word)
    return raw.startswith(b"{")


class _Outcome(msgspec.Struct, frozen=True, gc=False):
    failed: bool = False


_OUTCOME = msgspec.json.Decoder(_Outcome)


def says_failed(entry: bytes) -> bool:
    """Whether a worker's entry says that the task has failed."""
    try:
        return _OUTCOME.decode(entry).failed
    except _UNREADABLE:
        return False


def read_progress(uuid: str, service: str, body: bytes, now: float) -> Progress | None:
    """Return what an EVENT says, None where it is no JSON object."""
    said = read_object(body)
    if said is None:
        return None
    resource = said.get("resource")
    return Progress(
        uuid,
        worker=_text(said.get("worker")),
        message=_text(said.get("message"))[:MAX_MESSAGE],
        severity=_text(said.get("severity")) or "INFO",
        status=_text(said.get("status")),
        task=_text(said.get("task")),
        service=_text(said.get("service")) or service,
        event_type=_text(said.get("event_type")) or "progress",
        resources=tuple(
            _text(item) for item in _list(resource if isinstance(resource, list) else [resource])
        ),
        at=now,
        said=said,
    )


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None or isinstance(value, dict | list) else str(value)


def _list(value: object) -> list[Any]:
    return [item for item in value if item is not None] if isinstance(value, list) else []
