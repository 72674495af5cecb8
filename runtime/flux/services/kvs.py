"""``kvs``: a small store of JSON values by key, at rank 0; an example of a service written by hand.

``kvs.put {"key","value"}`` sets a value, or with the value null takes it away, and gives ``{"version"}``;
``kvs.get {"key"}`` gives ``{"value","version"}``. ``kvs.watch {"key"}`` streams the value there is, if there is
one, and each that follows; null says that the key is gone. Versions count the changes of the whole store.

From any rank a request finds the store by going up. It is in memory only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from specwire.generated.flux import EPROTO
from specwire.runtime.flux.credentials import USER
from specwire.runtime.flux.errors import ENOENT, ENOSPC, FluxError
from specwire.runtime.flux.services.service import Call, Service, serves

if TYPE_CHECKING:
    from specwire.runtime.flux.broker import BrokerEngine

MAX_KEY_LENGTH = 1024
MAX_VALUE_OCTETS = 1 << 20
MAX_STORE_OCTETS = 64 << 20
"""All keys and values together: the store is an example, and shares the memory of a broker."""
NULL = msgspec.Raw(b"null")


class Key(msgspec.Struct):
    """What ``kvs.get`` and ``kvs.watch`` ask for."""

    key: str


class Put(msgspec.Struct):
    """What ``kvs.put`` sets."""

    key: str
    value: msgspec.Raw


class Stored(msgspec.Struct):
    """A value with the version of the store in which it was set."""

    value: msgspec.Raw
    version: int


class KvsService(Service):
    """The store of an instance."""

    ROOT_ONLY = True

    __slots__ = ("_octets", "_values", "_version")

    def __init__(self, broker: BrokerEngine) -> None:
        super().__init__(broker)
        self._values: dict[str, Stored] = {}
        self._octets = self._version = 0

    @serves("get", USER)
    def get(self, call: Call) -> None:
        """Tell the value of a key."""
        stored = self._values.get(call.read(Key).key)
        if stored is None:
            raise FluxError(ENOENT)
        call.respond(stored)

    @serves("put")
    def put(self, call: Call) -> None:
        """Set the value of a key, or take it away."""
        wanted = call.read(Put)
        stored = Stored(msgspec.Raw(bytes(wanted.value)), self._version + 1)
        self._store(wanted.key, stored)
        self._version += 1
        call.respond({"version": self._version})
        for watch in [*self.kept()]:
            if watch.read(Key).key == wanted.key:
                watch.respond(stored)

    @serves("watch", USER)
    def watch(self, call: Call) -> None:
        """Tell the value of a key, now and whenever it is set."""
        stored = self._values.get(call.read(Key).key)
        if not call.is_stream:
            raise FluxError(EPROTO, "watch is a stream")
        if stored is not None:
            call.respond(stored)
        self.keep(call)

    def _store(self, key: str, stored: Stored) -> None:
        before = self._values.get(key)
        freed = _octets(key, before) if before else 0
        if stored.value == NULL:
            self._values.pop(key, None)
            self._octets -= freed
            return
        added = _octets(key, stored)
        if len(key) > MAX_KEY_LENGTH or len(bytes(stored.value)) > MAX_VALUE_OCTETS:
            raise FluxError(
                ENOSPC, f"a key has at most {MAX_KEY_LENGTH} characters, a value {MAX_VALUE_OCTETS} octets"
            )
        if self._octets + added - freed > MAX_STORE_OCTETS:
            raise FluxError(ENOSPC, f"the store has at most {MAX_STORE_OCTETS} octets")
        self._values[key] = stored
        self._octets += added - freed


def _octets(key: str, stored: Stored) -> int:
    return len(key) + len(bytes(stored.value)) + 200
