"""What keeps a rehearsal from beginning, for people: one sentence each."""

from __future__ import annotations


class RehearsalError(Exception):
    """A rehearsal or replay cannot be held as asked; `str()` says why, and what to do."""
