"""What can be wrong with an endpoint, as one sentence for the user."""

from __future__ import annotations


class TransportError(Exception):
    """An endpoint cannot be bound or connected; `str()` names the endpoint and the reason."""


class ShortageError(TransportError):
    """The system has no more of what a socket needs (descriptors, memory); a later try may find some."""


class ExposureError(TransportError):
    """An endpoint would be open to others who prove nothing; `str()` says what to do instead."""
