"""Who may do what at a broker: peers by name, each with its key, its roles and its rights.

The `Guard` of the transport lets a peer in by its key and gives it the name that the table has for the key; under this
name (the *user*) everything is judged. Rights are patterns with ``*`` and ``?``:

- a *client* calls services and tasks (``call``: ``service`` or ``service:task``) and sees its own jobs, and those of
  others that ``see`` names;
- a *worker* offers services (``serve``) and may ask the broker for inventory and files;
- an *admin* is a client of everything that may use management (``manage``) and see every job, unless it is told less.

A peer's routing id is bound to its user too: it is one of ``names``, by default the user's name, or that name, a dash and
more, or the number that libzmq gives a peer without a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate
from typing import Literal, get_args

import msgspec

PeerRole = Literal["client", "worker", "admin"]
ROLES: tuple[str, ...] = get_args(PeerRole)

MAX_NAME_OCTETS = 200
WORKERS_CALL = ("sid.service.broker", "fss.service.broker", "filesharing")
"""Services inside the broker that every worker may call: its inventory and files."""

INVENTORY = "sid.service.broker"


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """One peer; what is None has the default of its roles. `key` is its public key (Z85).

    `next_key` is the public key that it is about to take: it comes in by either.
    """

    name: str
    key: str
    roles: tuple[PeerRole, ...]
    names: tuple[str, ...] | None = None
    call: tuple[str, ...] | None = None
    serve: tuple[str, ...] | None = None
    see: tuple[str, ...] | None = None
    manage: tuple[str, ...] | None = None
    next_key: str | None = msgspec.field(default=None, name="next-key")


class _Patterns:
    """Patterns of which one is to match."""

    def __init__(self, patterns: Iterable[str]) -> None:
        wanted = "|".join(translate(pattern) for pattern in patterns)
        self._matches = re.compile(wanted).match if wanted else None

    def match(self, text: str) -> bool:
        """Tell whether one of them matches all of `text`."""
        return self._matches is not None and self._matches(text) is not None


class _Rights:
    """What one peer may do, ready to be looked up."""

    def __init__(self, peer: Peer) -> None:
        admin, worker = "admin" in peer.roles, "worker" in peer.roles
        everything = ("*",) if admin else ()
        call = [*(everything if peer.call is None else peer.call), *(WORKERS_CALL if worker else ())]
        self.admin = admin
        self.names = _Patterns((peer.name, f"{peer.name}-*") if peer.names is None else peer.names)
        self.services = _Patterns(pattern.partition(":")[0] for pattern in call)
        self.tasks = _Patterns(pattern if ":" in pattern else f"{pattern}:*" for pattern in call)
        self.serve = _Patterns(peer.serve or ())
        self.see = _Patterns(everything if peer.see is None else peer.see)
        self.manage = _Patterns(everything if peer.manage is None else peer.manage)


class Table:
    """The peers that are let in, and nobody else; an `Access` for the broker's engine.

    Attributes:
        names: the name of each peer by its public key, for the `Guard`.

    Raises:
        ValueError: a peer is not well described, or two have a name or a key in common.
    """

    def __init__(self, peers: Iterable[Peer]) -> None:
        self.names: dict[str, str] = {}
        self._rights: dict[str, _Rights] = {}
        for peer in peers:
            if fault := fault_in_peer(peer) or self._clash(peer):
                raise ValueError(f"peer {peer.name!r}: {fault}")
            self.names |= dict.fromkeys(_keys_of(peer), peer.name)
            self._rights[peer.name] = _Rights(peer)

    def __len__(self) -> int:
        return len(self._rights)

    def become(self, other: Table) -> None:
        """Be the table that `other` is, for everyone who has this one."""
        self.names.clear()
        self.names.update(other.names)
        self._rights = dict(other._rights)

    def owns(self, user: str, peer: bytes) -> bool:
        """Whether `user` may come in with this routing id."""
        rights = self._rights.get(user)
        if rights is None:
            return False
        if peer[:1] == b"\0":
            return True  # libzmq's own number, which no peer can choose
        try:
            return rights.names.match(peer.decode())
        except UnicodeDecodeError:
            return False

    def may_have_inventory(self, user: str, name: str) -> bool:
        """Whether `user` may have the inventory of the worker `name`: its own, or as admin any."""
        rights = self._rights.get(user)
        return rights is not None and (rights.admin or rights.names.match(name))

    def may_serve(self, user: str, name: str, service: str) -> bool:
        """See `Access.may_serve`."""
        rights = self._rights.get(user)
        return rights is not None and rights.names.match(name) and rights.serve.match(service)

    def may_call(self, user: str, service: str, task: str) -> bool:
        """See `Access.may_call`."""
        rights = self._rights.get(user)
        if rights is None:
            return False
        return rights.tasks.match(f"{service}:{task}") if task else rights.services.match(service)

    def may_see(self, user: str, owner: str) -> bool:
        """See `Access.may_see`."""
        rights = self._rights.get(user)
        return rights is not None and (user == owner or rights.see.match(owner))

    def may_manage(self, user: str, task: str) -> bool:
        """See `Access.may_manage`."""
        rights = self._rights.get(user)
        return rights is not None and rights.manage.match(task)

    def _clash(self, peer: Peer) -> str | None:
        if peer.name in self._rights:
            return "the name is another peer's too; give each its own"
        for key in _keys_of(peer):
            if key in self.names:
                return f"the key is that of {self.names[key]!r} too; make one for each with `specwire norfab keys`"
        return None


def _keys_of(peer: Peer) -> tuple[str, ...]:
    return (peer.key,) if peer.next_key is None else (peer.key, peer.next_key)


def fault_in_peer(peer: Peer) -> str | None:
    """Return what is wrong with a peer's description and what to do, None where nothing is."""
    # libzmq hands the name over as a C string: a NUL would end it early, and make it another peer's.
    if not peer.name or not peer.name.isprintable() or len(peer.name.encode()) > MAX_NAME_OCTETS:
        return f"its name is to be 1 to {MAX_NAME_OCTETS} octets of printable text"
    if any(character in peer.name for character in "*?["):
        return "its name has a character that means something in a pattern (* ? [); leave it out"
    if not peer.roles:
        return f"it has no role; give it some of {', '.join(ROLES)}"
    if "worker" in peer.roles and not peer.serve:
        return "a worker needs serve, the services that it may offer, or ['*'] for all"
    if "worker" not in peer.roles and peer.serve:
        return "serve is for the role worker; add it, or leave serve out"
    if peer.roles == ("client",) and not peer.call:
        return "a client needs call, the services or service:task that it may call, or ['*'] for all"
    if "admin" not in peer.roles and "client" not in peer.roles and peer.call:
        return "call is for the roles client and admin; add one, or leave call out"
    return None
