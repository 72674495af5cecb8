"""What a program sees of a message that came in: its content, read when it is asked for."""

from __future__ import annotations

from types import UnionType
from typing import Any, Generic, TypeVar, overload

import msgspec

from specwire.generated.flux import Event, Request, Response
from specwire.runtime.flux.flags import NORESPONSE, STREAMING
from specwire.runtime.flux.payload import decode_json, decode_text

M = TypeVar("M", Request, Response, Event)
Type = TypeVar("Type")


class View(msgspec.Struct, Generic[M], eq=False, gc=False):
    """A message and its content.

    Attributes:
        message: as it came.
    """

    message: M

    @property
    def topic(self) -> str:
        """The topic; empty where the message has none."""
        return self.message.topic or ""

    @property
    def payload(self) -> bytes | None:
        """The octets of the payload, with the NUL that ends JSON and text."""
        return self.message.payload

    @property
    def text(self) -> str:
        """The payload as text; raises FluxError (EPROTO)."""
        return decode_text(self.message.payload)

    @property
    def userid(self) -> int:
        """The user who sent the message, as the broker that let it in saw them."""
        return self.message.userid

    @property
    def rolemask(self) -> int:
        """The roles of that user."""
        return self.message.rolemask

    def json(self) -> dict[str, Any]:
        """Return the payload's JSON object; raises FluxError (EPROTO)."""
        return decode_json(self.message.payload, dict[str, Any])

    @overload
    def read(self, type_: type[Type]) -> Type: ...
    @overload
    def read(self, type_: UnionType) -> Any: ...
    def read(self, type_: Any) -> Any:
        """Return the payload's JSON as `type_`, such as a `msgspec.Struct` or a union of them.

        Raises:
            FluxError: the payload does not fit `type_` (EPROTO).
        """
        return decode_json(self.message.payload, type_)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r})"


class Reply(View[Response], eq=False, gc=False):
    """A successful response."""


class Notice(View[Event], eq=False, gc=False):
    """An event."""

    @property
    def sequence(self) -> int:
        """Its number in the instance."""
        return self.message.sequence


class ServiceRequest(View[Request], eq=False, gc=False):
    """A request to a service."""

    @property
    def route(self) -> tuple[str, ...]:
        """Identities of the hops it came by, the latest first."""
        return self.message.routes or ()

    @property
    def streaming(self) -> bool:
        """Whether it takes more than one response."""
        return bool(self.message.flags & STREAMING)

    @property
    def wants_response(self) -> bool:
        """Whether anybody waits for the outcome."""
        return not self.message.flags & NORESPONSE
