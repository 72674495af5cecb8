"""What a client is still to be told: for each file name, that it was created or deleted.

A name is in the queue once, with its newest operation, at the place of its newest change. That order matters
where a file becomes a folder or the reverse: of ``/a`` and ``/a/b`` at most one exists in the end, and the
deletion of the other came first, so it leaves first.
"""

from __future__ import annotations

from collections import OrderedDict

from specwire.generated.filemq import Operation


class SendQueue:
    """Changes for one client, oldest first."""

    def __init__(self) -> None:
        # Not a dict: taking from its front again and again is quadratic.
        self._operations: OrderedDict[str, Operation] = OrderedDict()

    def __len__(self) -> int:
        return len(self._operations)

    def put(self, name: str, operation: Operation) -> None:
        """Queue the newest operation on `name`, at the end."""
        self._operations[name] = operation
        self._operations.move_to_end(name)

    def put_first(self, name: str, operation: Operation) -> None:
        """Queue an operation that must come before everything else."""
        self._operations[name] = operation
        self._operations.move_to_end(name, last=False)

    def take(self) -> tuple[str, Operation] | None:
        """Remove and return the oldest operation, None where there is none."""
        return self._operations.popitem(last=False) if self._operations else None
