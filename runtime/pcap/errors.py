"""What recorded packets can have wrong, for people: one sentence each."""

from __future__ import annotations


class PcapError(Exception):
    """A packet capture, or a hex dump, that cannot be read; `str()` is one sentence that says where and why."""
