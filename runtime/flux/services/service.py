"""What a service that is built into the broker is: a class with a method for each word after its name.

`Service.handle` finds the method, asks whether the sender may call it, and turns a `FluxError` into a response.
A method answers through its `Call`: at once, or later if it keeps the call (`Service.keep`), as streams do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import msgspec

from specwire.generated.flux import ENODATA, Request
from specwire.runtime.flux.answering import pack, pack_text, unpack
from specwire.runtime.flux.credentials import OWNER, may_use
from specwire.runtime.flux.errors import EAGAIN, EPERM, FluxError
from specwire.runtime.flux.flags import NORESPONSE, STREAMING

if TYPE_CHECKING:
    from specwire.runtime.flux.broker import BrokerEngine

Type = TypeVar("Type")

MAX_KEPT = 16_384
"""Calls that one service keeps open: each costs less than 1 kB, and a real instance has a few dozen."""


class Call:
    """A request at the service that it is for, and the way to answer it.

    After the final answer, and for a request with NORESPONSE, answers go nowhere.

    Attributes:
        request: as it came, its routes with the latest hop first.
        is_open: whether more answers may follow.
        is_kept: whether the service will answer later.
    """

    __slots__ = ("_answer", "is_kept", "is_open", "request")

    def __init__(self, request: Request, answer: Callable[[Request, bytes | None, int], None]) -> None:
        self.request, self._answer, self.is_kept = request, answer, False
        self.is_open = not request.flags & NORESPONSE

    @property
    def is_stream(self) -> bool:
        """Whether the sender awaits several responses."""
        return bool(self.request.flags & STREAMING)

    def read(self, type_: type[Type]) -> Type:
        """Return the JSON payload as `type_`; raises FluxError EPROTO."""
        return unpack(self.request.payload, type_)

    def respond(self, value: object = None) -> None:
        """Answer with a JSON object, or with no payload; of a stream this is not the last answer."""
        self.respond_octets(None if value is None else pack(value))

    def respond_octets(self, payload: bytes | None) -> None:
        """Answer with a payload as it stands; of a stream this is not the last answer."""
        if self.is_open:
            request = self.request
            self.is_open = bool(request.flags & STREAMING)
            self._answer(request, payload, 0)

    def fail(self, errnum: int, text: str = "") -> None:
        """Give an error number as the last answer."""
        if self.is_open:
            self.is_open = False
            self._answer(self.request, pack_text(text) if text else None, errnum)

    def end(self) -> None:
        """End a stream."""
        self.fail(ENODATA)

    def acknowledge(self) -> None:
        """Say that it is done, with nothing to tell: of a stream, its end."""
        if self.is_stream:
            self.end()
        else:
            self.respond()

    def is_from(self, routes: tuple[str, ...]) -> bool:
        """Tell whether the sender of this call is the one whose request, on the same way, has these routes."""
        return (self.request.routes or ())[: len(routes)] == routes


class Method(NamedTuple):
    """A method of a service and the roles that may call it."""

    function: Callable[[Any, Call], None]
    roles: int


Function = TypeVar("Function", bound=Callable[..., None])


class _Marked(Generic[Function]):
    """A function that `serves` marked, until its class is complete."""

    def __init__(self, function: Function, word: str, roles: int) -> None:
        self.function, self.word, self.roles = function, word, roles

    def __set_name__(self, owner: type[Service], name: str) -> None:
        owner.METHODS = {**owner.METHODS, self.word: Method(self.function, self.roles)}
        setattr(owner, name, self.function)


def serves(word: str, roles: int = OWNER) -> Callable[[Function], Function]:
    """Mark a function as the method `word` of its service, open to the owner and to `roles`."""

    def mark(function: Function) -> Function:
        marked: Any = _Marked(function, word, roles)
        return marked  # type: ignore[no-any-return]

    return mark


class Cancel(msgspec.Struct):
    """The payload of ``<service>.cancel``."""

    matchtag: int


class Service:
    """One service of one broker. Made when the first request for it comes.

    `METHODS` has what is open to a topic's remaining words. Each service also has ``disconnect``, by which a
    client that closes takes back what it asked for, and ``cancel``, by which it takes back one call.
    """

    METHODS: ClassVar[Mapping[str, Method]] = {}
    ROOT_ONLY: ClassVar[bool] = False
    """Whether only rank 0 has the service; requests from elsewhere find it by going up."""

    __slots__ = ("_kept", "broker")

    def __init__(self, broker: BrokerEngine) -> None:
        self.broker = broker
        self._kept: list[Call] = []

    def handle(self, call: Call, word: str) -> None:
        """Carry out the method `word`, which is empty where the topic is the service's name alone."""
        request = call.request
        method = self.METHODS.get(word)
        if method is None and word == "disconnect":
            self.forget(request.routes or ())
            call.acknowledge()
            return
        if method is None and word == "cancel":
            self._cancel(call)
            return
        try:
            if method is None:
                raise self.unknown(request)
            rolemask = request.rolemask
            if not rolemask & OWNER and not may_use(rolemask, request.userid, method.roles):
                raise FluxError(EPERM)
            method.function(self, call)
        except FluxError as error:
            call.fail(error.errnum, error.text)

    def unknown(self, request: Request) -> FluxError:
        """Return the error for a method that is not there."""
        rules = self.broker.settings.wire.rules
        return FluxError(rules.not_implemented, f"Unknown service method '{request.topic}'")

    def keep(self, call: Call) -> None:
        """Keep a call to answer it later; raises FluxError EAGAIN where there are too many."""
        if not call.is_open:
            return
        if len(self._kept) >= MAX_KEPT:
            raise FluxError(EAGAIN, f"{MAX_KEPT} calls are open")
        call.is_kept = True
        self._kept.append(call)

    def kept(self) -> list[Call]:
        """Return the calls that are kept and open; those that were closed meanwhile are forgotten."""
        self._kept = [call for call in self._kept if call.is_open]
        return self._kept

    def forget(self, routes: tuple[str, ...]) -> None:
        """Drop, unanswered, the calls of senders on the way that begins with `routes`: nobody awaits them."""
        if routes:
            for call in self._kept:
                call.is_open = call.is_open and not call.is_from(routes)
            self.kept()

    def _cancel(self, call: Call) -> None:
        """End one call of the sender; the cancel itself has no answer unless it asks for one."""
        try:
            wanted = call.read(Cancel)
        except FluxError as error:
            call.fail(error.errnum, error.text)
            return
        routes = call.request.routes or ()
        for other in self.kept():
            if routes and other.is_from(routes) and other.request.matchtag == wanted.matchtag:
                other.end()
        call.acknowledge()
