"""Capture of live traffic: a `Tap` writes the messages of one peer to Parquet segments.

`specwire.runtime.capture.segments` reads and writes the files; it needs pyarrow and is imported on its own.
"""

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.limits import Limits
from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.capture.tap import Tap

__all__ = ["CaptureError", "Limits", "Recorder", "Tap"]
