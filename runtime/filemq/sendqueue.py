"""Queue of changes to send to one client: for each file name, whether it was created or deleted.

A name is in the queue once, with its newest operation, at the place of its newest change. The order
matters if a file becomes a folder or the reverse: of ``/a`` and ``/a/b`` at most one exists in the
end. The deletion of the other came first, so it is sent first.

After RESYNC a client may lack every published file. These files have one place in the queue and are
stored as a set of bits, so a client that is far behind costs little. A later RESYNC moves the rest
of an earlier one to its own place: these files exist, and a creation may always be sent later. For
the same reason, many changes are also stored as bits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from itertools import chain, islice

from specwire.generated.filemq import Operation
from specwire.runtime.filemq.catalogue import Catalogue
from specwire.runtime.filemq.nameset import NameSet

MANY_CHANGES = 4096
"""From so many changes on, or from an eighth of all files, creations are stored as bits too."""


class SendQueue:
    """Changes for one client, oldest first; `files` are all published files."""

    def __init__(self, files: Catalogue) -> None:
        self._files = files
        # Not dicts: repeatedly taking from the front of one is quadratic. A name is in one of the three.
        self._earlier: OrderedDict[str, Operation] = OrderedDict()
        self._lacking: NameSet | None = None
        self._later: OrderedDict[str, Operation] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._earlier or self._lacking or self._later)

    def __len__(self) -> int:
        return self.by_name + len(self._lacking or ())

    @property
    def by_name(self) -> int:
        """Number of changes that are kept by the names of their files."""
        return len(self._earlier) + len(self._later)

    def has_creation(self, name: str) -> bool:
        """Return whether a file is still to be sent."""
        if self._lacking is not None and name in self._lacking:
            return True
        return Operation.CREATE in (self._earlier.get(name), self._later.get(name))

    def first(self, most: int) -> list[str]:
        """Return the names of the first files, at most `most`."""
        lacking: Iterable[str] = self._lacking or ()
        return [*islice(chain(self._earlier, lacking, self._later), most)]

    def put(self, name: str, operation: Operation) -> None:
        """Queue the newest operation on `name`, at the end."""
        self._drop(name)
        self._later[name] = operation
        if len(self._later) >= max(MANY_CHANGES, len(self._files) // 8):
            self._fold()

    def put_first(self, name: str, operation: Operation) -> None:
        """Queue an operation that must come before everything else."""
        self._drop(name)
        self._earlier[name] = operation
        self._earlier.move_to_end(name, last=False)

    def put_lacking(self, names: NameSet) -> None:
        """Queue the creation of existing files, at the end. The queue takes over the set."""
        if names:
            self._put_behind(names)

    def pop(self) -> tuple[str, Operation] | None:
        """Remove and return the oldest operation and the name of its file; None if the queue is empty."""
        if self._earlier:
            return self._earlier.popitem(last=False)
        if self._lacking is not None:
            if (name := self._lacking.pop_first()) is not None:
                return name, Operation.CREATE
            self._lacking = None
        return self._later.popitem(last=False) if self._later else None

    def _fold(self) -> None:
        """Store the later creations as bits, behind the deletions."""
        names = NameSet(self._files.order())
        names.add(name for name, operation in self._later.items() if operation is Operation.CREATE)
        self._put_behind(names)

    def _put_behind(self, names: NameSet) -> None:
        """Queue the creation of these after everything else, together with those that were lacking before."""
        if self._lacking is not None:
            names.update(self._lacking)
        waiting = chain(self._earlier.items(), self._later.items())
        self._earlier = OrderedDict(
            (name, operation)
            for name, operation in waiting
            if operation is Operation.DELETE or name not in names  # a deleted file is not created
        )
        self._lacking, self._later = names, OrderedDict()

    def _drop(self, name: str) -> None:
        """Remove a name from the queue."""
        if self._lacking is None or not self._lacking.discard(name):
            self._earlier.pop(name, None)
            self._later.pop(name, None)
