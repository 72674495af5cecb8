"""How grave a line of the log is: the numbers of RFC 5424, where fewer is worse."""

from __future__ import annotations

from enum import IntEnum


class Severity(IntEnum):
    """Those that brokers use; programs may write all eight, from 0."""

    ERROR = 3
    WARNING = 4
    NOTICE = 5
    INFO = 6
    DEBUG = 7
