"""What can go wrong between a capture and its tables, for people: one sentence each.

A capture that cannot be read raises `specwire.runtime.capture.CaptureError`.
"""

from __future__ import annotations


class PipelineError(Exception):
    """The base of the errors here; `str()` is one sentence that names what to look at."""


class InputError(PipelineError):
    """What was asked for cannot be done: an unknown protocol, a folder that must not be replaced."""


class BusyError(InputError):
    """Another run is at work in the output folder; it ends by itself."""


class JobError(PipelineError):
    """Spark could not be started, or a job of it failed."""
