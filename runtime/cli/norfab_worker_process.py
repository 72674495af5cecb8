"""The process of `specwire norfab worker`, without the command line: an idle worker shall be small.

What runs at SIGINT or SIGTERM is finished, or has failed after a while; what has not begun goes back to the broker. When
management tells the worker to restart, the process begins anew with the same options, and so with the plugin's present
code.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path

import msgspec

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.cli.console import print_error
from specwire.runtime.cli.norfab_worker_options import KEYS, PROCESS, USER, WorkerOptions
from specwire.runtime.cli.signals import stop_requested
from specwire.runtime.log.lines import OURS, take_over
from specwire.runtime.norfab.store.errors import StoreError
from specwire.runtime.norfab.worker.limits import WorkerSettings
from specwire.runtime.norfab.worker.narration import Narrator
from specwire.runtime.norfab.worker.plugin import find_plugin
from specwire.runtime.norfab.worker.serve import NorfabWorker
from specwire.runtime.norfab.worker.tasks import PluginError
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.keys import KeyFileError
from specwire.runtime.transport.security import NULL, Security


class WorkerLog:
    """Lines on standard error, with the time; a log that nobody reads any more does not end a worker."""

    def __init__(self, *, quiet: bool) -> None:
        self.narrator = Narrator(self.line, jobs=not quiet)
        self._handler = take_over(self.line)
        self._stream = sys.stderr

    def line(self, text: str) -> None:
        """Write one line."""
        with suppress(OSError, ValueError):
            self._stream.write(f"{time.strftime('%H:%M:%S')} {text}\n")

    def close(self) -> None:
        """Leave our loggers as they were."""
        OURS.removeHandler(self._handler)


def main(arguments: Sequence[str]) -> int:
    """Run a worker with the options in the only argument; return the exit status."""
    options = msgspec.json.decode(arguments[0], type=WorkerOptions)
    log = WorkerLog(quiet=options.quiet)
    try:
        # What a plugin prints belongs into the log.
        with redirect_stdout(sys.stderr), _open_tap(options) as tap:
            restart = asyncio.run(_serve(options, tap, log))
    except (PluginError, KeyFileError, CaptureError, ValueError) as error:
        return _tell(error, 2)
    except (StoreError, TransportError) as error:
        return _tell(error, 1)
    finally:
        log.close()
    if restart:
        sys.stderr.flush()
        os.execv(sys.executable, [sys.executable, "-m", PROCESS, *arguments])
    return 0


def _tell(error: Exception, status: int) -> int:
    print_error(f"specwire: {error}")
    return status


async def _serve(options: WorkerOptions, tap: Recorder | None, log: WorkerLog) -> bool:
    """Run a worker until it is told to stop; return whether it is to begin anew."""
    stop = stop_requested()
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
        on_event=log.narrator.tell,
    )
    async with serving:
        await asyncio.wait((stop, serving.finished), return_when=asyncio.FIRST_COMPLETED)
        log.line("stopping")
    return serving.finished.result()


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
    from specwire.runtime.cli.norfab_options import open_tap

    with open_tap(Path(options.capture), f"worker-{options.name}") as tap:
        yield tap


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
