"""`specwire norfab store`: check, back up and export the store of a broker, a worker or a client."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specwire.runtime.cli.console import fail, print_error, waiting

if TYPE_CHECKING:
    from specwire.runtime.norfab.storetools import CheckReport, StoreFault

FAILED = 1
HELP = "Check, back up and export the store of a broker, a worker or a client, which may run meanwhile."

app = typer.Typer(help=HELP, no_args_is_help=True)

FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        metavar="DIR",
        help="Folder of a broker, worker or client, or a backup file."
        " (default: the broker's, specwire/norfab in your data folder)",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@app.command(
    epilog="Exit status: 0 for a sound store; 1 for one with faults;"
    " 2 for usage, and where there is no store."
)
def check(folder: FolderOption = None, as_json: JsonOption = False) -> None:
    """Read the whole store, and report its faults: a line for each, then a summary.

    A store is sound if SQLite finds no damage, every record can be decoded,
    and the records fit together: each result belongs to a job, no part of a
    job has two results, no uuid has two jobs.
    """
    from specwire.runtime.norfab import storetools

    with _errors():
        place = _locate(folder)
        with waiting(f"reading {place}"):
            report = storetools.check(place)
    if as_json:
        import msgspec

        _print_json({"sound": not report.found, **msgspec.to_builtins(report, enc_hook=str)})
    else:
        for fault in report.faults:
            sys.stdout.write(f"{_describe(fault)}\n")
        sys.stdout.write(f"{_summarize(report)}\n")
    if report.damaged:
        print_error(
            f"specwire: the file is damaged: when the {report.peer} starts, it copies the rows that can be read"
            f" to a new file, and renames this one to {report.path.name}.damaged-TIME"
        )
    if report.found:
        raise typer.Exit(FAILED)


@app.command(
    epilog="Exit status: 0; 1 when the copy failed; 2 for usage, and where there is no store or FILE exists."
)
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file.", show_default=False)],
    folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy the present state of the store to a new file.

    To restore it, put the file into an empty folder under the name that it had
    (broker.sqlite3, worker.sqlite3 or client.db). Keys, the access table and
    other files of the folder are not in it.
    """
    from specwire.runtime.log.text import show
    from specwire.runtime.norfab import storetools
    from specwire.runtime.quantities import show_octets

    with _errors():
        place = _locate(folder)
        with waiting(f"copying {place}"):
            octets = storetools.backup(place, file)
    if as_json:
        _print_json({"file": str(file), "octets": octets})
    else:
        sys.stdout.write(f"{show(str(file))}: {show_octets(octets)}\n")


@app.command(
    epilog="Exit status: 0; 1 when a record cannot be read, or no record has the UUID;"
    " 2 for usage, and where there is no store."
)
def export(
    folder: FolderOption = None,
    uuid: Annotated[
        str | None, typer.Option("--uuid", metavar="UUID", help="Only this job.", show_default=False)
    ] = None,
) -> None:
    """Print every record as a line of JSON, in the order of writing.

    Each line has `kind`, `uuid` and the fields of the record. Octets that are
    UTF-8 are a string, so a JSON body is a string that contains JSON. Other
    octets are Base64, in a field whose name ends with `_base64`: `body_base64`.
    The store of a worker or a client is exported table by table.
    """
    from specwire.runtime.norfab import storetools

    skipped: list[StoreFault] = []

    def skip(fault: StoreFault) -> None:
        skipped.append(fault)
        print_error(f"specwire: skipped {_describe(fault)}")

    lines = 0
    with _errors():
        try:
            for record in storetools.export(_locate(folder), uuid, on_fault=skip):
                sys.stdout.write(f"{json.dumps(record)}\n")
                lines += 1
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader has closed the pipe. Python would report that again when it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return
    if skipped:
        raise typer.Exit(FAILED)
    if uuid is not None and not lines:
        fail(f"no record has the uuid {uuid}", status=FAILED)


def _locate(folder: Path | None) -> Path:
    from specwire.runtime.norfab.security.keyring import default_folder

    return folder or default_folder(os.environ)


@contextmanager
def _errors() -> Iterator[None]:
    """End the command with the sentence of a StoreError."""
    from specwire.runtime.kernel.store import StoreError, StoreVersionError
    from specwire.runtime.norfab.storereading import NoStoreError

    try:
        yield
    except (NoStoreError, StoreVersionError) as error:
        fail(str(error))
    except StoreError as error:
        fail(str(error), status=FAILED)


def _print_json(value: Any) -> None:
    """Write JSON in ASCII: a name may contain octets that are not UTF-8."""
    sys.stdout.write(f"{json.dumps(value, indent=2)}\n")


def _describe(fault: StoreFault) -> str:
    from specwire.runtime.log.text import show

    uuid = f" of {fault.uuid}" if fault.uuid and not fault.row.endswith(f" {fault.uuid}") else ""
    return show(f"{fault.row}{uuid}: {fault.fault}" if fault.row else fault.fault)


def _summarize(report: CheckReport) -> str:
    from specwire.runtime.log.text import show
    from specwire.runtime.quantities import show_count, show_octets

    counts = report.counts
    jobs = [f"{counts[state]:,} {state}" for state in ("open", "ended", "deleted") if state in counts]
    parts = [f"jobs: {', '.join(jobs)}"] if jobs else []
    parts += [show_count(counts[name], name[:-1]) for name in ("workers", "records") if name in counts]
    verdict = show_count(report.found, "fault") if report.found else "sound"
    if len(report.faults) < report.found:
        verdict += f", {len(report.faults):,} of them listed"
    return f"{show(str(report.path))}: {'; '.join([*parts, show_octets(report.octets)])}: {verdict}"
