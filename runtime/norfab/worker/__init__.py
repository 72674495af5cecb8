"""NORFAB worker: `NorfabWorker` offers the tasks of a plugin, whose methods are marked with `task`."""

from specwire.runtime.norfab.worker.handle import Job, JobCancelledError, Result, Worker
from specwire.runtime.norfab.worker.limits import WorkerSettings
from specwire.runtime.norfab.worker.plugin import find_plugin
from specwire.runtime.norfab.worker.serve import NorfabWorker
from specwire.runtime.norfab.worker.sharedfile import SharedFile
from specwire.runtime.norfab.worker.tasks import PluginError, task

__all__ = [
    "Job",
    "JobCancelledError",
    "NorfabWorker",
    "PluginError",
    "Result",
    "SharedFile",
    "Worker",
    "WorkerSettings",
    "find_plugin",
    "task",
]
