"""What `specwire norfab worker` tells the process that does the work."""

from __future__ import annotations

from typing import Literal

import msgspec

PROCESS = "specwire.runtime.cli.norfab_worker_process"
USER = "worker"
"""Whose keys a worker uses that has none under its own name."""

KEYS = "keys"
"""The folder with keys in the folder of a broker; as in `norfab_options`, which needs the command line."""


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command was told; paths as text, None for what has a default."""

    service: str
    plugin: str
    name: str
    brokers: tuple[str, ...]
    concurrency: int
    job_timeout: float | None
    grace: float | None
    drain: float | None
    resources: tuple[str, ...]
    folder: str | None
    durability: Literal["process", "full"]
    keys: str | None
    user: str | None
    insecure: bool
    protocol: Literal["norfab_ascii", "norfab"]
    capture: str | None
    capture_keep: str | None = None
    capture_max: str | None = None
    capture_payload: str = "keep"
    capture_free: str | None = None
    quiet: bool
    metrics: str | None = None
    metrics_anywhere: bool = False
    metrics_password_file: str = ""
    log_format: Literal["text", "json"] = "text"
    config: str | None = None
    """The configuration that the command was started with: SIGHUP begins anew by it."""
    command: tuple[str, ...] = ()
    """The words of the command line, to begin anew with."""
