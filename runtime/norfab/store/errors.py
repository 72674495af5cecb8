"""Why a store cannot be used, as one sentence for whoever runs the peer."""

from __future__ import annotations


class StoreError(Exception):
    """A store cannot be opened, read or closed; `str()` names the file, the reason, and what to do."""


class StoreInUseError(StoreError):
    """Another process has the store open."""


class StoreVersionError(StoreError):
    """The store was made by another version of this program, or is no store at all; it is left as it is."""
