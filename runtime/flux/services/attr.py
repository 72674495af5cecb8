"""``attr``: what a broker says of itself, by name; values are text.

``attr.get {"name"}`` gives ``{"value","flags"}``, with flags 1 for a value that never changes. The owner may add
values of his own with ``attr.set`` and take them back with ``attr.rm``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from specwire.runtime.flux.credentials import USER
from specwire.runtime.flux.errors import ENOENT, ENOSPC, EPERM, FluxError
from specwire.runtime.flux.journal import RING_LINES
from specwire.runtime.flux.services.service import Call, Service, serves

if TYPE_CHECKING:
    from specwire.runtime.flux.broker import BrokerEngine

IMMUTABLE = 1
MAX_SET = 1024
"""Values that were set; the broker's own are two dozen."""
MAX_OCTETS = 65_536
"""Of one value with its name: all together cost at most 64 MB."""


class Name(msgspec.Struct):
    """What ``attr.get`` and ``attr.rm`` ask for."""

    name: str


class Setting(msgspec.Struct):
    """What ``attr.set`` sets."""

    name: str
    value: str


class Value(msgspec.Struct):
    """What ``attr.get`` gives."""

    value: str
    flags: int


class AttrService(Service):
    """The attributes of one broker."""

    __slots__ = ("_fixed", "_set")

    def __init__(self, broker: BrokerEngine) -> None:
        super().__init__(broker)
        self._set: dict[str, str] = {}
        self._fixed = fixed_attributes(broker)

    @serves("get", USER)
    def get(self, call: Call) -> None:
        """Tell one value."""
        name = call.read(Name).name
        if name in self._set:
            call.respond(Value(self._set[name], 0))
        elif name in self._fixed:
            call.respond(Value(self._fixed[name], IMMUTABLE))
        else:
            raise FluxError(ENOENT)

    @serves("list", USER)
    def list(self, call: Call) -> None:
        """Tell all names."""
        call.respond({"names": sorted((*self._fixed, *self._set))})

    @serves("set")
    def set(self, call: Call) -> None:
        """Set a value that is not the broker's own."""
        setting = call.read(Setting)
        if setting.name in self._fixed:
            raise FluxError(EPERM, f"{setting.name} cannot be changed")
        if len(setting.name) + len(setting.value) > MAX_OCTETS:
            raise FluxError(ENOSPC, f"{MAX_OCTETS} octets are the most")
        if setting.name not in self._set and len(self._set) >= MAX_SET:
            raise FluxError(ENOSPC, f"{MAX_SET} values are the most")
        self._set[setting.name] = setting.value
        call.acknowledge()

    @serves("rm")
    def remove(self, call: Call) -> None:
        """Take a value back."""
        name = call.read(Name).name
        if name in self._fixed:
            raise FluxError(EPERM, f"{name} cannot be changed")
        if self._set.pop(name, None) is None:
            raise FluxError(ENOENT)
        call.acknowledge()


def fixed_attributes(broker: BrokerEngine) -> dict[str, str]:
    """Return what a broker knows of itself, under the names that tools ask for."""
    settings, tree = broker.settings, broker.settings.tree
    version = settings.version
    return {
        **settings.attributes,
        "broker.pid": str(settings.process),
        "broker.starttime": f"{broker.started + settings.clock_offset_s:.2f}",
        "hostlist": ",".join(settings.host(rank) for rank in range(tree.size)),
        "hostname": broker.hostname,
        "instance-level": str(settings.instance_level),
        "log-forward-level": str(int(settings.forward_level)),
        "log-ring-size": str(RING_LINES),
        "rank": str(broker.rank),
        "security.owner": str(settings.owner),
        "size": str(tree.size),
        "tbon.descendants": str(tree.subtree_size(broker.rank) - 1),
        "tbon.fanout": str(tree.fanout),
        "tbon.level": str(tree.level(broker.rank)),
        "tbon.maxlevel": str(tree.height),
        "tbon.topo": f"kary:{tree.fanout}",
        "version": f"{version >> 16}.{version >> 8 & 0xFF}.{version & 0xFF}",
    }
