"""Process of `specwire norfab worker`, without the command line, so that an idle worker is small.

At SIGINT or SIGTERM, running jobs finish, or fail after a timeout; jobs that have not begun go back
to the broker. When management restarts the worker, the process executes itself again with the same
options, and so with the plugin's current code.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.cli.console import print_error
from specwire.runtime.cli.metrics_showing import shown
from specwire.runtime.cli.norfab_worker_options import KEYS, PROCESS, USER, WorkerOptions
from specwire.runtime.cli.norfab_worker_reloading import reload_requested
from specwire.runtime.cli.readiness import Readiness
from specwire.runtime.cli.signals import stop_requested
from specwire.runtime.kernel.service import raise_descriptor_limit
from specwire.runtime.kernel.store import StoreError
from specwire.runtime.log.form import LogForm
from specwire.runtime.log.serverlog import ServerLog
from specwire.runtime.log.stamp import Stamp
from specwire.runtime.norfab.worker.events import Happening
from specwire.runtime.norfab.worker.limits import WorkerSettings
from specwire.runtime.norfab.worker.narration import Narrator, level_of
from specwire.runtime.norfab.worker.plugin import find_plugin
from specwire.runtime.norfab.worker.serve import NorfabWorker
from specwire.runtime.norfab.worker.tasks import PluginError
from specwire.runtime.observe.place import Place, read_place
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.keys import KeyFileError
from specwire.runtime.transport.security import NULL, Security

if TYPE_CHECKING:
    from specwire.runtime.observe.view import Subject

ROLE = "norfab-worker"

CHILDREN_S = 1.0
"""Time that all child processes have to end after SIGTERM, before they are killed."""


class WorkerLog:
    """Log lines on standard error, with the time. If it is closed, the worker continues."""

    def __init__(self, *, quiet: bool, form: LogForm = LogForm.TEXT) -> None:
        self._log = ServerLog(self._write, Stamp(ROLE, form), form)
        self._narrator = Narrator(self._log.narrated, jobs=not quiet)
        self._stream = sys.stderr

    def line(self, text: str) -> None:
        """Write one line."""
        self._log.line(text)

    def tell(self, happening: Happening) -> None:
        """Write what happened."""
        self._log.tell(happening, self._narrator.tell, level_of(happening))

    def _write(self, line: str) -> None:
        with suppress(OSError, ValueError):
            self._stream.write(f"{line}\n")

    def close(self) -> None:
        """Leave our loggers as they were."""
        self._log.close()


def main(arguments: Sequence[str]) -> int:
    """Run a worker with the options in the only argument; return the exit status."""
    options = msgspec.json.decode(arguments[0], type=WorkerOptions)
    log = WorkerLog(quiet=options.quiet, form=LogForm(options.log_format))
    try:
        # The output of a plugin goes to the log.
        with redirect_stdout(sys.stderr), _open_tap(options) as tap:
            restart = asyncio.run(_serve(options, arguments, tap, log))
    except (PluginError, KeyFileError, CaptureError, ValueError) as error:
        return _tell(error, 2)
    except (StoreError, TransportError) as error:
        return _tell(error, 1)
    finally:
        log.close()
        end_children()
    if restart is not None:
        sys.stderr.flush()
        os.execv(sys.executable, [sys.executable, "-m", *restart])
    return 0


def end_children() -> None:
    """End the processes that tasks started with multiprocessing, which Python would wait for.

    At this point the worker waits for no task, so it does not wait for their processes either.
    """
    if "multiprocessing" not in sys.modules:
        return
    from multiprocessing import active_children

    children = active_children()
    for child in children:
        child.terminate()
    until = time.monotonic() + CHILDREN_S
    for child in children:
        child.join(max(0.0, until - time.monotonic()))
        if child.exitcode is None:
            child.kill()
            child.join()


def _tell(error: Exception, status: int) -> int:
    print_error(f"specwire: {error}")
    return status


async def _serve(
    options: WorkerOptions, arguments: Sequence[str], tap: Recorder | None, log: WorkerLog
) -> Sequence[str] | None:
    """Run a worker until it stops; return the module and arguments to restart with, if it must."""
    stop, ready = stop_requested(), Readiness()
    raise_descriptor_limit()
    reloaded = reload_requested(options.config, log.line) if options.config is not None else stop
    serving = NorfabWorker(
        options.brokers,
        options.name,
        options.service,
        find_plugin(options.plugin),
        folder=_folder(options),
        security=NULL if options.insecure else _security(options),
        resources=options.resources,
        concurrency=options.concurrency,
        durability=options.durability,
        settings=settings_of(options),
        protocol=options.protocol,
        tap=tap,
        on_event=log.tell,
    )
    async with serving:
        ready.tell()
        async with shown(_place(options), lambda: _subject(serving), log.line):
            await asyncio.wait((stop, reloaded, serving.finished), return_when=asyncio.FIRST_COMPLETED)
        log.line("stopping")
    if reloaded.done() and not stop.done():
        return ["specwire", *options.command]
    return [PROCESS, *arguments] if serving.finished.result() else None


def _place(options: WorkerOptions) -> Place | None:
    """Return where the worker shows itself; that there may be such a place the command line has seen."""
    if options.metrics is None:
        return None
    return read_place(
        options.metrics,
        anywhere=options.metrics_anywhere,
        password_file=options.metrics_password_file,
    )


def _subject(worker: NorfabWorker) -> Subject:
    from specwire.runtime.observe.norfab import worker_subject

    return worker_subject(worker)


def settings_of(options: WorkerOptions) -> WorkerSettings:
    """Return the worker's times; those that were not said are its own."""
    said = {"job_s": options.job_timeout, "grace_s": options.grace, "drain_s": options.drain}
    wanted = {name: value for name, value in said.items() if value is not None}
    return msgspec.structs.replace(WorkerSettings(), **wanted)


def _folder(options: WorkerOptions) -> Path:
    from specwire.runtime.norfab.security.keyring import default_folder

    if options.folder is not None:
        return Path(options.folder)
    return default_folder(os.environ) / "workers" / options.name.replace("/", "_")


def _security(options: WorkerOptions) -> Security:
    """Return how the worker proves itself; raises KeyFileError."""
    from specwire.runtime.norfab.security.keyring import Keyring, default_folder

    ring = Keyring(default_folder(os.environ) / KEYS if options.keys is None else Path(options.keys))
    own = options.name if (ring.folder / f"{options.name}.key_secret").exists() else USER
    return ring.peer(options.user or own)


@contextmanager
def _open_tap(options: WorkerOptions) -> Iterator[Recorder | None]:
    """Open a tap for a capture, None where there is none; raises CaptureError."""
    if options.capture is None:
        yield None
        return
    from specwire.runtime.cli.capture_options import read_capture_limits
    from specwire.runtime.cli.norfab_options import open_tap

    limits = read_capture_limits(
        options.capture_keep, options.capture_max, options.capture_payload, options.capture_free
    )
    with open_tap(Path(options.capture), f"worker-{options.name}", limits) as tap:
        yield tap


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
