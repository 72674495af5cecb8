"""Decoding of sources: options to readers, readers to rows, wanted rows to where they go."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

import msgspec

from specwire.runtime.cli.console import fail, messages, output
from specwire.runtime.cli.decode_filter import Filter, message_names, read_time
from specwire.runtime.cli.decode_message import payload_of
from specwire.runtime.cli.decode_octets import STANDARD_INPUT
from specwire.runtime.cli.decode_sinks import Shown, Sink, Written
from specwire.runtime.cli.decode_sources import Readers, Sources
from specwire.runtime.cli.decode_waiting import Waiting
from specwire.runtime.log.text import show
from specwire.runtime.packages import load_package, package_names
from specwire.runtime.pcap.choosing import in_order, protocol_name
from specwire.runtime.pcap.hexdump import Kind
from specwire.runtime.pcap.rows import Row

AUTO = "auto"
NOTHING = "no message was found; record connections of ZMTP from their beginning, or wait for messages with --follow"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What `specwire decode` was asked for, as its options say it."""

    protocols: Sequence[str]
    sender: str | None
    dump_of: Kind | None
    port: int | None
    messages: Sequence[str]
    peer: str
    since: str | None
    until: str | None
    errors: bool
    check_payloads: bool
    limit: int | None
    follow: bool
    details: bool
    out: Path | None
    json: bool


def decode_sources(sources: Sequence[str], options: Options) -> None:
    """Decode the messages in files, folders and standard input, and show or write those that are asked for."""
    if options.follow and len(sources) > 1:
        fail("--follow takes one file or folder, or - for standard input")
    readers = _readers(options.protocols)
    asked = Filter(
        names=message_names([*readers.packages, *readers.by_port.values()], options.messages),
        peer=options.peer.lower(),
        since=read_time(options.since, "--since"),
        until=read_time(options.until, "--until"),
        errors=options.errors,
    )
    lasts = options.follow or STANDARD_INPUT in sources
    waiting = Waiting()
    reading = Sources(
        readers,
        _note,
        port=options.port,
        # A pipe waits for more by itself, until it is closed.
        follow=options.follow and sources[0] != STANDARD_INPUT,
        sender=options.sender,
        kind=options.dump_of,
        waiting=waiting,
        # Where messages go to the terminal themselves, they show the progress.
        bar=options.out is not None or not output().is_terminal,
    )
    sink: Sink = (
        Shown(readers, at_once=lasts, details=options.details, json=options.json)
        if options.out is None
        else Written(options.out, readers, json=options.json)
    )
    if lasts:
        waiting.take_signals()
    # Who follows may stop before anything came, and what connections with other ports hold is not looked at.
    may_be_none = options.follow or options.port is not None
    packages = {protocol_name(one): one for one in [*readers.packages, *readers.by_port.values()]}
    checked = packages if options.check_payloads else {}
    _run(sources, reading, asked, options.limit, sink, checked, lasts=lasts, may_be_none=may_be_none)


def _readers(named: Sequence[str]) -> Readers:
    """The packages that the user named, or all."""
    by_port: dict[int, ModuleType] = {}
    everywhere: list[ModuleType] = []
    for text in named:
        port, separator, name = text.rpartition("=")
        if name == AUTO and not separator:
            continue
        package = load_package(name)
        if not separator:
            everywhere.append(package)
        elif port.isdecimal() and 0 < int(port) < 65536:
            by_port[int(port)] = package
        else:
            fail(f"--protocol {text}: {port!r} is no TCP port; write it as 5670=filemq")
    stated = bool(everywhere) and AUTO not in named
    packages = everywhere if stated else [load_package(name) for name in in_order(package_names())]
    return Readers(tuple(packages), by_port, stated)


def _note(sentence: str) -> None:
    sys.stdout.flush()  # What was found stands above what could not be read.
    messages().print(f"specwire: {show(sentence)}", markup=False, soft_wrap=True)


class _Seen(msgspec.Struct):
    """What the sources had, whether or not it was asked for."""

    rows: int = 0
    is_interrupted: bool = False


def _run(
    sources: Sequence[str],
    reading: Sources,
    asked: Filter,
    limit: int | None,
    sink: Sink,
    checked: Mapping[str, ModuleType],
    *,
    lasts: bool,
    may_be_none: bool,
) -> None:
    """Give what is wanted to the sink, until the sources end, the limit is reached, or a signal ends it."""
    shown, seen = 0, _Seen()
    try:
        for row in _wanted(sources, reading, asked, seen, checked, lasts=lasts):
            if row is None:
                sink.pause()
                continue
            sink.take(row)
            shown += 1
            if shown == limit:
                break
        sink.end()
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read standard output has enough; Python would complain once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    if not seen.rows and not seen.is_interrupted and not may_be_none:
        fail(NOTHING, status=1)
    if not shown:
        _note("no message is as asked for" if seen.rows else "no message was found")


def _wanted(
    sources: Sequence[str],
    reading: Sources,
    asked: Filter,
    seen: _Seen,
    checked: Mapping[str, ModuleType],
    *,
    lasts: bool,
) -> Iterator[Row | None]:
    """The rows that are wanted; a signal is the end of sources that last, and of the command elsewhere."""

    def is_wanted(row: Row) -> bool:
        seen.rows += 1
        return asked.wants(row)

    try:
        for source in sources:
            for row in reading.read(source):
                found = row and _with_payload_fault(row, checked)
                if found is None or is_wanted(found):
                    yield found
    except KeyboardInterrupt:
        if not lasts:
            raise
        seen.is_interrupted = True
    yield from filter(is_wanted, (_with_payload_fault(row, checked) for row in reading.end()))


def _with_payload_fault(row: Row, checked: Mapping[str, ModuleType]) -> Row:
    """Return a row with an error if its payload does not fit; `checked` are the packages to check with."""
    package = checked.get(row.protocol or "")
    found = payload_of(package, row.message) if package and row.message is not None else None
    return msgspec.structs.replace(row, error=found.fault) if found and found.fault else row
