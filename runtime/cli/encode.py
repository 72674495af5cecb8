"""`specwire encode`: messages from their fields, as the hexadecimal octets of their frames or as a capture.

The reverse of `specwire decode`, and its fellow: what `decode --json` writes, `--json-input` reads, and the lines that are
printed are a hex dump that `decode` reads, as well as arguments to paste behind it.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from specwire.runtime.cli.console import fail, messages, print_json
from specwire.runtime.cli.encode_values import Fields
from specwire.runtime.cli.packages import Grammars, Packages, complete_protocol, use_packages
from specwire.runtime.packages import load_package
from specwire.runtime.pcap.choosing import protocol_name
from specwire.runtime.pcap.rows import Row

EXIT_STATUSES = "Exit status: 0; 2 for usage, and for values that cannot be put on the wire."
STANDARD_INPUT = "-"
EMPTY = "''"
"""How an empty frame is written, for a shell as well as for `decode`."""
MAX_INPUT_OCTETS = 1 << 30


def command(
    protocol: Annotated[
        str | None,
        typer.Argument(
            help="Name of the protocol, such as flux.",
            show_default=False,
            autocompletion=complete_protocol,
        ),
    ] = None,
    message: Annotated[
        str | None, typer.Argument(help="Name of the message, such as Request.", show_default=False)
    ] = None,
    fields: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FIELD=VALUE]...",
            help="Values: text, numbers or their names; octets as text, hex:DIGITS or @FILE; FIELD:=JSON for the rest."
            " A field that takes several is given several times.",
            show_default=False,
        ),
    ] = None,
    json_input: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Read messages as `specwire decode --json` writes them; - for standard input.",
            show_default=False,
        ),
    ] = None,
    packages: Packages = None,
    grammars: Grammars = None,
    strict: Annotated[bool, typer.Option("--strict", help="Write the letter of the specification.")] = False,
    sender: Annotated[
        str, typer.Option(help="For --out: letter of the role that sends, where the input names none.")
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write the messages as a capture folder instead.", show_default=False
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each message.")] = False,
) -> None:
    """Encode messages and print their frames in hexadecimal, a line each and '' for an empty one."""
    use_packages(packages, grammars, [protocol] if protocol else [])
    if json_input is None:
        if protocol is None or message is None:
            fail("which message? specwire encode PROTOCOL MESSAGE FIELD=VALUE..., or --json-input FILE")
        objects: Iterator[dict[str, Any]] = iter([{"protocol": protocol, "message": message}])
    else:
        objects = _read_objects(json_input)
    rows = _encode(objects, fields or [], protocol=protocol, message=message, strict=strict)
    if out is not None:
        _record(rows, out, sender, as_json=as_json)
        return
    for number, (row, _) in enumerate(rows):
        if as_json:
            frames = [frame.hex() for frame in row.frames]
            line = {"protocol": row.protocol, "message": row.name, "frames": frames}
            sys.stdout.write(json.dumps(line) + "\n")
        else:
            # An empty line parts messages, as it does in the dumps that decode reads.
            lines = [frame.hex() or EMPTY for frame in row.frames]
            sys.stdout.write("\n" * (number > 0) + "".join(f"{line}\n" for line in lines))


def _encode(
    objects: Iterator[dict[str, Any]],
    texts: list[str],
    *,
    protocol: str | None,
    message: str | None,
    strict: bool,
) -> Iterator[tuple[Row, str]]:
    """The messages that the objects describe, and their protocols' editions; what is typed stands above them."""
    known: dict[tuple[str, str], Fields] = {}
    for number, given in enumerate(objects, 1):
        where = protocol or _text(given, "protocol", number)
        name = message or _text(given, "message", number)
        package = load_package(where)
        if (where, name) not in known:
            known[where, name] = Fields(package, name)
        fields = known[where, name]
        values = given.get("fields") or {}
        if not isinstance(values, dict):
            fail(f"message {number}: its fields are no object")
        built = fields.build({**fields.from_object(values), **fields.from_texts(texts)})
        row = Row(
            frames=tuple(built.encode(strict=strict)),
            ts=_moment(given, number),
            protocol=protocol_name(package),
            conversation=str(given.get("conversation") or "encoded"),
            sender=str(given.get("sender") or ""),
            peer=str(given.get("peer") or ""),
            message=built,
        )
        yield row, str(package.EDITION)


def _text(given: Mapping[str, Any], key: str, number: int) -> str:
    value = given.get(key)
    if not isinstance(value, str):
        fail(f"message {number} of the input names no {key}")
    return value


def _moment(given: Mapping[str, Any], number: int) -> int | None:
    """The microseconds since 1970 that an object states."""
    text = given.get("ts")
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment - datetime.fromisoformat("1970-01-01T00:00:00Z")) // datetime.resolution
    except (TypeError, ValueError):
        fail(f"message {number}: {text!r} is no time")


def _read_objects(source: str) -> Iterator[dict[str, Any]]:
    """The objects in a text of JSON: one after another, on lines or not, or in an array."""
    name = "standard input" if source == STANDARD_INPUT else source
    with sys.stdin.buffer if source == STANDARD_INPUT else Path(source).open("rb") as file:
        octets = file.read(MAX_INPUT_OCTETS + 1)
    if len(octets) > MAX_INPUT_OCTETS:
        fail(f"{name}: more than {MAX_INPUT_OCTETS} octets of JSON")
    try:
        text = octets.decode("utf-8-sig")
    except UnicodeDecodeError:
        fail(f"{name}: not UTF-8")
    decoder, at = json.JSONDecoder(), 0
    while (at := _skip_space(text, at)) < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            fail(f"{name}:{text.count(chr(10), 0, at) + 1}: not JSON")
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, dict):
                fail(f"{name}: {item!r:.60} is no object that describes a message")
            if item.get("message") is not None or "error" not in item:
                yield item


def _skip_space(text: str, at: int) -> int:
    found = re.compile(r"\s*").match(text, at)
    return found.end() if found else at


def _record(rows: Iterator[tuple[Row, str]], folder: Path, sender: str, *, as_json: bool) -> None:
    from specwire.runtime.pcap.recording import Recording

    recording = Recording(folder)
    now = time.time_ns() // 1000
    for number, (row, edition) in enumerate(rows):
        ts = now + number if row.ts is None else row.ts
        made = msgspec.structs.replace(row, ts=ts, mono=ts * 1000, sender=row.sender or sender)
        recording.add(made, edition)
    recording.flush()
    if as_json:
        print_json({"folder": str(folder), "written": recording.taps.written})
        return
    told = ", ".join(f"{count:,} {name}" for name, count in recording.taps.written.items()) or "no"
    messages().print(f"{told} messages written to {folder}", markup=False, soft_wrap=True)
