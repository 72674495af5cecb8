"""CMB1 in its earlier edition, where a flag says that the payload is JSON.

What this edition writes otherwise, or has no word for:

- JSON: a payload of Flux v1 that is an object with its NUL is JSON without the NUL and with the flag; all other
  payloads are octets. What comes with the flag and is no object is refused.
- NORESPONSE: there is no such flag. The request is sent without it, and the broker where it came in drops the answer.
  ``<service>.disconnect``, which nobody answers, is known by that name and matchtag 0.
- STREAMING: there is none. The broker where such a request comes in answers it with an error, if it is for another.
- PRIVATE: there is none. A broker does not publish a private event, since its like would not keep it private.
- Bits of the flags octet that have no meaning in this edition are not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from specwire.generated import cmb1_json, flux
from specwire.generated.errors import DecodeError
from specwire.generated.flux import MATCHTAG_NONE
from specwire.runtime.flux.cmb1_forms import (
    RULES,
    Kinds,
    from_flux,
    to_control,
    to_flux,
    to_keepalive,
    unsayable,
)
from specwire.runtime.flux.flags import NORESPONSE, PRIVATE, STREAMING, UPSTREAM
from specwire.runtime.flux.wire import FLUX, Wire

Routed = cmb1_json.Request | cmb1_json.Response | cmb1_json.Event
KINDS: Kinds[cmb1_json.AnyMessage] = Kinds(cmb1_json.Request, cmb1_json.Response, cmb1_json.Event)


class Cmb1JsonWire:
    """The earlier edition."""

    name = "cmb1_json"
    edition = cmb1_json.EDITION
    rules = msgspec.structs.replace(RULES, private_events=False, streams=False)
    local = FLUX

    def decode(self, frames: Sequence[bytes]) -> flux.AnyMessage:
        """See `Wire.decode`."""
        message = cmb1_json.decode(frames)
        if isinstance(message, cmb1_json.Keepalive):
            return to_control(0, message.userid, message.rolemask, message.errnum, message.status)
        flags = message.flags & UPSTREAM
        if isinstance(message, cmb1_json.Request) and is_disconnect(message.topic, message.matchtag):
            flags |= NORESPONSE
        return to_flux(message, to_payload(message), flags)

    def encode(self, message: flux.AnyMessage) -> list[bytes]:
        """See `Wire.encode`."""
        if isinstance(message, flux.Control):
            errnum, status = to_keepalive(message, self.name)
            return cmb1_json.Keepalive(0, message.userid, message.rolemask, errnum, status).encode()
        payload, json = split_payload(message.payload)
        flags = to_flags(message)
        return from_flux(message, KINDS, self.name, flags, payload=payload, json=json).encode()


def to_flags(message: flux.Request | flux.Response | flux.Event) -> int:
    """Return the flags that this edition has; raises EncodeError where the message says more by another."""
    absent = ""
    if isinstance(message, flux.Request) and message.flags & STREAMING:
        absent = "streaming"
    elif isinstance(message, flux.Event) and message.flags & PRIVATE:
        absent = "private"
    if absent:
        raise unsayable(Cmb1JsonWire.name, message.NAME, "flags", "flags of this edition", absent)
    return message.flags & UPSTREAM


def is_disconnect(topic: str | None, matchtag: int) -> bool:
    """Tell whether a request says that its sender is gone, and so wants no answer."""
    return matchtag == MATCHTAG_NONE and topic is not None and topic.endswith(".disconnect")


def split_payload(payload: bytes | None) -> tuple[bytes | None, str | None]:
    """Return a payload of Flux v1 as octets or as JSON."""
    if payload and payload[-1] == 0 and _is_object(payload[:-1]):
        return None, str(payload[:-1], "utf-8")
    return payload, None


def to_payload(message: Routed) -> bytes | None:
    """Return a payload as Flux v1 has it; raises DecodeError for JSON that is no object."""
    if message.json is None:
        return message.payload
    octets = message.json.encode()
    if not _is_object(octets):
        raise DecodeError(
            protocol=Cmb1JsonWire.name,
            message_name=message.NAME,
            field="json",
            frame=None,
            offset=None,
            kind="text",
            expected="a JSON object",
            found=f"{len(octets)} octets that are none",
            rule=f"{cmb1_json.EDITION} json",
        )
    return octets + b"\0"


def _is_object(octets: bytes) -> bool:
    try:
        msgspec.json.decode(octets, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return True


CMB1_JSON: Wire = Cmb1JsonWire()
