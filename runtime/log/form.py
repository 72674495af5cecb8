"""How a server writes its log: as lines for people, or as one JSON object a line for programs."""

from __future__ import annotations

from enum import Enum


class LogForm(Enum):
    """The form of a log."""

    TEXT = "text"
    JSON = "json"
