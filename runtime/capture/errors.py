"""What capturing and reading captures can find wrong, for people: one sentence each."""

from __future__ import annotations


class CaptureError(Exception):
    """A capture that cannot be written or read; `str()` is one sentence that names the folder or file."""
