"""The messages of other implementations, with what they say: which class, which field values.

The recorders named the fields their own way; here each entry gets the names and types of our messages, from
the entry alone: none of our code takes part. `flags` is the whole octet, as on the wire.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).parent.parent / "vectors"
PACKAGES = ("cmb1", "cmb1_json", "filemq", "flux", "libfilemq", "norfab", "norfab_ascii", "zmtp", "zre")


@dataclass(frozen=True)
class Vector:
    """One message on the wire and what it means; `class_name` is empty where the recorder names none."""

    package: str
    name: str
    frames: tuple[bytes, ...]
    class_name: str
    fields: dict[str, Any]
    framed: bytes = b""
    """The same on a byte stream, where that was recorded too."""

    def __str__(self) -> str:
        return f"{self.package}:{self.name}"


def package(name: str) -> ModuleType:
    """Return a generated package."""
    return import_module(f"specwire.generated.{name}")


@cache
def entries(file: str) -> tuple[dict[str, Any], ...]:
    """Return the entries of a vector file."""
    return tuple(json.loads((FOLDER / file).read_text(encoding="utf-8")))


@cache
def recorded(name: str) -> tuple[Vector, ...]:
    """Return all vectors of a package, those that it must refuse too."""
    return tuple(_READERS[name](name))


def frames_of(entry: dict[str, Any]) -> tuple[bytes, ...]:
    """Return the frames of an entry."""
    return tuple(bytes.fromhex(frame) for frame in entry["frames_hex"])


@cache
def all_recorded() -> tuple[tuple[bytes, ...], ...]:
    """Return the frames of every distinct message in all vector files, of all protocols."""
    files = sorted(path.name for path in FOLDER.glob("*.json"))
    found = {frames_of(entry) for file in files for entry in entries(file) if "frames_hex" in entry}
    return tuple(sorted(found))


def _filemq(name: str) -> Iterator[Vector]:
    for entry in entries("filemq-seed-hand.json"):
        fields = {key: _pairs(value) for key, value in entry["fields"].items()}
        if "operation" in fields:
            fields["operation"] = {"create": 1, "delete": 2}[fields["operation"]]
            fields["chunk"] = bytes.fromhex(fields["chunk"])
        command = entry["name"].removesuffix("-empty").removesuffix("-del")
        yield Vector(name, entry["name"], frames_of(entry), _camel(command), _without_constants(fields))


def _libfilemq(name: str) -> Iterator[Vector]:
    for number, entry in enumerate(entries("filemq-libfilemq.json")):
        fields = {key: _pairs(value) for key, value in entry["fields"].items()}
        if "filename" in fields:
            # The recorder wrote each octet of a name as a character of its own.
            fields["filename"] = fields["filename"].encode("latin-1").decode("utf-8")
        if "chunk_hex" in fields:
            fields["chunk"] = bytes.fromhex(fields.pop("chunk_hex"))
        # Several entries have one name; the refused ones, which others refer to, do not.
        shown = entry["name"] if entry["command"] is None else f"{number} {entry['name']}"
        command = _camel(entry["command"] or "")
        yield Vector(name, shown, frames_of(entry), command, _without_constants(fields))


def _without_constants(fields: dict[str, Any]) -> dict[str, Any]:
    """OHAI's protocol and version are constants of the grammar, no fields."""
    if "protocol" in fields:
        assert (fields.pop("protocol"), fields.pop("version")) == ("FILEMQ", 2)
    return fields


def _flux_entries() -> Iterator[dict[str, Any]]:
    yield from entries("flux-core-0.88.json")
    yield from entries("flux-cli-0.88.json")


_TYPES = {
    "flux": {1: "Request", 2: "Response", 4: "Event", 8: "Control"},
    "cmb1": {1: "Request", 2: "Response", 4: "Event", 8: "Keepalive"},
}
_LAST_TWO = {
    "Request": ("nodeid", "matchtag"),
    "Response": ("errnum", "matchtag"),
    "Event": ("sequence",),
    "Control": ("type_", "status"),
    "Keepalive": ("errnum", "status"),
}


def _flux(name: str) -> Iterator[Vector]:
    """Flux, and CMB1, whose header is the same; its routes are octets and its last type is another."""
    for entry in _flux_entries():
        stated = entry["fields"]
        framed = bytes.fromhex(entry.get("framed_hex") or "")
        if "type" not in stated:
            yield Vector(name, entry["name"], frames_of(entry), "", {}, framed)
            continue
        class_name = _TYPES[name.removesuffix("_json")][stated["type"]]
        fields: dict[str, Any] = {key: stated[key] for key in ("flags", "userid", "rolemask")}
        last = (stated["aux1"], stated["aux2"])
        fields |= dict(zip(_LAST_TWO[class_name], last, strict=False))
        if class_name != "Keepalive":
            fields["routes"] = _routes(stated, text=name == "flux")
        if stated["type"] != 8:
            payload = stated["payload"].encode() if "payload" in stated else None
            fields |= {"topic": stated.get("topic"), "payload": payload}
            if name == "cmb1_json":
                fields |= _json_payload(stated["flags"], payload)
        yield Vector(name, entry["name"], frames_of(entry), class_name, fields, framed)


def _routes(stated: dict[str, Any], *, text: bool) -> tuple[str | bytes, ...] | None:
    if "routes_top_first" not in stated:
        return None
    return tuple(route if text else route.encode() for route in stated["routes_top_first"])


def _json_payload(flags: int, payload: bytes | None) -> dict[str, Any]:
    """In the earlier edition the bit that is now noresponse says that the payload is JSON text."""
    if payload is not None and flags & 0x04:
        return {"payload": None, "json": payload.decode()}
    return {"payload": payload, "json": None}


_LEGS = {
    "client->broker": "Client",
    "broker->client": "Client",
    "broker->worker": "Worker",
    "worker->broker": "Worker",
}
_ONE_FORM = ("OPEN", "READY", "KEEPALIVE", "DISCONNECT")


def _norfab(name: str) -> Iterator[Vector]:
    """The deployed form; the specified one is the same with the command number in one octet."""
    for entry in entries("norfab-0.25-0.6.json"):
        stated, frames = entry["fields"], list(frames_of(entry))
        assert len(frames) == stated["n_frames"]
        if name == "norfab" and stated["command"].startswith("0x") and len(frames[2]) == 4:
            frames[2] = bytes.fromhex(stated["command"][2:])
        command = stated["command_name"].partition("(")[0]
        class_name = command.capitalize() + ("" if command in _ONE_FORM else _LEGS[entry["direction"]])
        if (command, entry["direction"]) == ("MMI", "broker->client"):
            class_name = "MmiBroker"
        yield Vector(name, entry["name"], tuple(frames), class_name, _norfab_fields(command, stated, frames))


def _norfab_fields(command: str, stated: dict[str, Any], frames: list[bytes]) -> dict[str, Any]:
    if command == "OPEN":
        return {"header": stated["header"], "body": frames[-1]}
    names = ("header", "service", "target", "uuid", "status")
    fields: dict[str, Any] = {key: stated[key] for key in names if key in stated}
    if "client_address" in stated:
        fields["client_address"] = stated["client_address"].encode()
    if command not in _ONE_FORM:
        fields["body"] = frames[-1]
    return fields


_ZRE = {
    "hello-full": "Hello",
    "whisper-1frame": "Whisper",
    "shout-1frame": "Shout",
    "join-edge": "Join",
    "ping": "Ping",
    "ping_ok-zero": "PingOk",
}


def _zre(name: str) -> Iterator[Vector]:
    for entry in entries("zre-rfc36.json"):
        fields = {key: _pairs(value) for key, value in entry["fields"].items()}
        if "content" in fields:
            fields["content"] = tuple(map(bytes.fromhex, fields["content"]))
        if "groups" in fields:
            fields["groups"] = tuple(fields["groups"])
        yield Vector(name, entry["name"], frames_of(entry), _ZRE[entry["name"]], fields)


def _zmtp(name: str) -> Iterator[Vector]:
    for entry in entries("zmtp-libzmq-4.3.5.json"):
        fields = dict(entry["fields"])
        for field in fields.keys() & {"message_body", "subscription", "ping_context"}:
            fields[field] = bytes.fromhex(fields[field])
        if "metadata" in fields:
            fields["metadata"] = tuple((key, bytes.fromhex(value)) for key, value in fields["metadata"])
        yield Vector(
            name, entry["name"], frames_of(entry), _camel(entry["message"]), fields, frames_of(entry)[0]
        )


def _pairs(value: Any) -> Any:
    return tuple(value.items()) if isinstance(value, dict) else value


def _camel(command: str) -> str:
    return "".join(part.capitalize() for part in command.split("-"))


_READERS = {
    "cmb1": _flux,
    "cmb1_json": _flux,
    "filemq": _filemq,
    "flux": _flux,
    "libfilemq": _libfilemq,
    "norfab": _norfab,
    "norfab_ascii": _norfab,
    "zmtp": _zmtp,
    "zre": _zre,
}
