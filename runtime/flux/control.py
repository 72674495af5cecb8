"""Control messages, which pass between neighbours in the tree and never further, and what they can say."""

from __future__ import annotations

from enum import IntEnum

from specwire.generated.flux import Control


class ControlType(IntEnum):
    """What a control message is: the first two from child to parent, the last from parent to child.

    A parent may send HEARTBEAT too, to find out whether the child can be reached; it says nothing.
    """

    HEARTBEAT = 0
    STATUS = 1
    DISCONNECT = 2


class Status(IntEnum):
    """How well a subtree is, as STATUS and ``overlay.health`` say it.

    FULL: all of it is there. PARTIAL: some of it never came, or said goodbye. DEGRADED: some of it was lost.
    LOST and OFFLINE are what a parent says of a child that is not there.
    """

    UNKNOWN = 0
    FULL = 1
    PARTIAL = 2
    DEGRADED = 3
    LOST = 4
    OFFLINE = 5

    @property
    def word(self) -> str:
        """The status as tools read it."""
        return self.name.lower()


HEARTBEAT = Control(routes=(), type_=int(ControlType.HEARTBEAT))
DISCONNECT = Control(routes=(), type_=int(ControlType.DISCONNECT))
STATUSES = {
    status: Control(routes=(), type_=int(ControlType.STATUS), status=int(status)) for status in Status
}
