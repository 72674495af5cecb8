"""When what is to be kept is committed: how long it gathers before.

A commit costs a thread's or a loop's turn more than it costs SQLite, and all that is kept in one is told at once. So what
comes in a turn of the event loop is committed in the next; where much comes in a turn, the one after is waited for, for a
while. What is patient waits for others, for a few milliseconds.

A peer that does one thing at a time has nothing to gather, and a turn of the loop costs it more than the commit. So where its
shell says when all was handed over that had come (`hold` and `settle`), what came alone and after a pause is committed there
and then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic

PATIENCE_S = 0.004
"""How long what is patient waits for others to be committed with."""

MANY = 4
BUSY_S = 0.02
"""Where so many come in a turn of the loop the next turn is waited for, for so long at most."""

PAUSE_S = 0.0002
SINGLES = 8
"""What comes alone, so long after the last commit and all that followed from it, and after so many commits of one each, is a
step of something that goes one step at a time."""


class Gathering:
    """Calls `commit` when it is time; to be used on one event loop.

    Args:
        commit: commits all that has gathered.
        patience_s: how long what is patient waits; None: `PATIENCE_S`.
    """

    def __init__(self, commit: Callable[[], None], *, patience_s: float | None = None) -> None:
        self._commit = commit
        self._patience_s = PATIENCE_S if patience_s is None else patience_s
        self._turn: asyncio.Handle | None = None
        self._count = self._pressing = self._looked_at = 0
        self._held = self._pressed = self._alone = False
        self._late_at = self._rested_at = 0.0
        self._singles = SINGLES

    @property
    def idle(self) -> bool:
        """Whether what comes now, alone, may as well be committed at once."""
        return not self._pressing and self._singles >= SINGLES and monotonic() - self._rested_at >= PAUSE_S

    def add(self, count: int = 1, *, patient: bool = False) -> None:
        """More has gathered.

        Args:
            count: how many, one at least.
            patient: more is about to come, and these may wait for it.
        """
        self._count += count
        if patient:
            if self._turn is None:
                self._turn = asyncio.get_running_loop().call_later(self._patience_s, self.finish)
        elif self._pressing:
            self._pressing += count
        else:
            self._late_at, self._alone = monotonic() + BUSY_S, self.idle
            self._pressing = count
            if not self._held:
                self._press()

    def hold(self) -> None:
        """Something is handled: until `settle` what it has to be kept only gathers."""
        self._held = True

    def settle(self) -> None:
        """Everything that had come was handled."""
        if not self._held:
            return
        self._held = False
        if not self._pressing or self._pressed:
            return
        if self._pressing == 1 and self._alone:
            self.finish()
        else:
            self._press()

    def finish(self) -> None:
        """Commit now what has gathered."""
        if self._pressing:
            self._singles = self._singles + 1 if self._pressing == 1 else 0
        self.clear()
        self._held = False
        self._commit()
        self._rested_at = monotonic()

    def clear(self) -> None:
        """Nothing has gathered any more."""
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        self._pressed = False
        self._count = self._pressing = self._looked_at = 0

    def _press(self) -> None:
        """Commit in the next turn of the loop; not at once: what else comes in this one joins."""
        if self._turn is not None:
            self._turn.cancel()
        self._turn, self._pressed = asyncio.get_running_loop().call_soon(self._end_turn), True

    def _end_turn(self) -> None:
        if self._count - self._looked_at >= MANY and monotonic() < self._late_at:
            # A peer that says much at once says more; and who is told of this together works on it together.
            self._looked_at = self._count
            self._turn = asyncio.get_running_loop().call_soon(self._end_turn)
        else:
            self.finish()
