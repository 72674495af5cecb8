"""What a tap is called: a name for people, and an id that no other tap ever has."""

from __future__ import annotations

import os
import re
import time

from specwire.runtime.capture.errors import CaptureError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def make_tap_id(name: str) -> str:
    """Return the name with this process's id and the time; CaptureError if it cannot begin a file name."""
    if not NAME.fullmatch(name):
        raise CaptureError(
            f"{name!r} cannot name a tap: letters, digits, '.', '_' and '-', a letter or digit first"
        )
    return f"{name}-{os.getpid()}-{time.time_ns() // 1000:x}"


def tap_name(tap_id: str) -> str:
    """Return the name in an id that `make_tap_id` made; other ids are their own name."""
    name, _, made = tap_id.rpartition("-")
    return name.rpartition("-")[0] if re.fullmatch(r".+-\d+", name) and made else tap_id
