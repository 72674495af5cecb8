"""Errors of reading, decoding and the pipeline, each with one sentence for the user.

A capture that cannot be read raises `specwire.runtime.capture.CaptureError`.
"""

from __future__ import annotations


class PipelineError(Exception):
    """Base of the errors here; `str()` is one sentence that names what to check."""


class InputError(PipelineError):
    """The request is invalid, such as an unknown protocol or a folder of another program."""


class BusyError(InputError):
    """Another run uses the output folder until it ends."""


class JobError(PipelineError):
    """Spark could not be started, or one of its jobs failed."""
