"""Messages on Spark: read captures, decode frames, make typed tables, encode frames.

    from specwire.runtime.spark import decode, encode, follow, from_specwire, read, register, to_specwire

Importing this package imports no part of Spark. A name imports its module when it is used.

Modules import only from folders above their own in this list (`tests/house/test_imports.py`):

    errors, protocols   errors for the user, parts of generated packages
    cluster             package folders for the executors of a cluster
    session             sessions: Java, Spark Connect, code and files for executors
    decoding            frames to columns and typed tables, and back
    reading             captures as DataFrames, batch and stream
    answers             tables computed from the typed tables
    pipeline            runs that add new segments to an output folder
    report              HTML page of the answers
    live                tables, answers and alerts while a capture grows
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specwire.runtime.spark.decoding.column import from_specwire, to_specwire
    from specwire.runtime.spark.decoding.decode import decode
    from specwire.runtime.spark.decoding.encode import encode
    from specwire.runtime.spark.decoding.tables import tables, with_payloads
    from specwire.runtime.spark.reading.capture import read_capture as read
    from specwire.runtime.spark.reading.source import follow, register

__all__ = [
    "decode",
    "encode",
    "follow",
    "from_specwire",
    "read",
    "register",
    "tables",
    "to_specwire",
    "with_payloads",
]

_MODULES = {
    "decode": ("decoding.decode", "decode"),
    "encode": ("decoding.encode", "encode"),
    "follow": ("reading.source", "follow"),
    "from_specwire": ("decoding.column", "from_specwire"),
    "read": ("reading.capture", "read_capture"),
    "register": ("reading.source", "register"),
    "tables": ("decoding.tables", "tables"),
    "to_specwire": ("decoding.column", "to_specwire"),
    "with_payloads": ("decoding.tables", "with_payloads"),
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _MODULES[name]
    return getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
