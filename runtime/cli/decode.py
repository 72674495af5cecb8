"""`specwire decode`: messages out of whatever has them, for a person to read or a program to take.

One message, given as the hexadecimal octets of its frames, is shown with all it holds. A hex dump, a packet capture
and a capture folder are shown as a line for each message, filtered, followed while they grow, or written as a capture.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from specwire.runtime.cli.console import fail, meant, print_json
from specwire.runtime.cli.decode_message import payload_object, payload_of, plain, show_message
from specwire.runtime.cli.packages import Grammars, Packages, complete_protocol, use_packages
from specwire.runtime.packages import load_package, package_names
from specwire.runtime.pcap.hexdump import Kind

AUTO = "auto"
STANDARD_INPUT = "-"
EXIT_STATUSES = (
    "Exit status: 0, also where some messages are faulty or a file is cut off; 1 where there is no message at all;"
    " 2 for usage and for octets that cannot be read."
)
MAX_SHOWN = 40
"""Characters of an argument that are repeated in a sentence about it."""


def command(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="[PROTOCOL] SOURCE...",
            autocompletion=complete_protocol,
            help="Each frame of one message in hexadecimal ('' for an empty one), or files and folders: hex dumps,"
            " packet captures (pcap, pcapng), capture folders; - for standard input.",
            show_default=False,
        ),
    ],
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[PORT=]NAME",
            help="Protocol of the messages, or of those of one TCP port; auto finds out by trying.",
            show_default=AUTO,
        ),
    ] = None,
    packages: Packages = None,
    grammars: Grammars = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Hold one message to the letter of the specification.")
    ] = False,
    sender: Annotated[
        str | None,
        typer.Option(
            help="Letter of the role that sent it: tells apart messages that look the same, and excludes those of others."
        ),
    ] = None,
    dump_of: Annotated[
        Kind | None,
        typer.Option(
            help="What each dump of a hex dump is: a frame of a message, a part of a ZMTP stream, an Ethernet packet.",
            show_default="found out",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Read only connections with this TCP port.", show_default=False),
    ] = None,
    message: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only messages of this name; may be repeated.", show_default=False),
    ] = None,
    peer: Annotated[
        str, typer.Option(metavar="TEXT", help="Only peers whose name or address has this in it.")
    ] = "",
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only from this time on (ISO 8601, UTC where it names no zone)."),
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Only before this time.")] = None,
    errors: Annotated[bool, typer.Option("--errors", help="Only what could not be decoded.")] = False,
    check_payloads: Annotated[
        bool,
        typer.Option(
            "--check-payloads", help="Count a payload that does not fit its JSON Schema as an error."
        ),
    ] = False,
    limit: Annotated[
        int | None, typer.Option(min=1, help="End after this many messages.", show_default=False)
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Wait for more where a capture ends, until SIGINT or SIGTERM; - is read to its end in any case.",
        ),
    ] = False,
    details: Annotated[
        bool, typer.Option("--details", help="Show every message with its frames and all fields.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write the messages as a capture folder instead.", show_default=False
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON: an object for one message, else a line for each.")
    ] = False,
) -> None:
    """Decode messages from frames in hexadecimal, hex dumps, packet captures and capture folders."""
    named, sources = _split(arguments, protocol or [], packages, grammars)
    if not _are_sources(sources):
        name = _only(named, sources)
        of_sources = {
            "--dump-of": dump_of,
            "--port": port,
            "--message": message,
            "--peer": peer,
            "--since": since,
            "--until": until,
            "--errors": errors,
            "--limit": limit,
            "--follow": follow,
            "--out": out,
        }
        for option in filter(of_sources.get, of_sources):
            fail(f"{option} is for files and folders; a message that is given by its frames is shown")
        _decode_one(name, sources, strict=strict, sender=sender, check_payloads=check_payloads, json=json)
        return
    if strict:
        fail("--strict is for one message, given by its frames")
    if check_payloads and out is not None:
        fail("--check-payloads is for messages that are shown; --out writes them as they are")
    from specwire.runtime.cli.decode_run import Options, decode_sources

    options = Options(
        protocols=named,
        sender=sender,
        dump_of=dump_of,
        port=port,
        messages=message or (),
        peer=peer,
        since=since,
        until=until,
        errors=errors,
        check_payloads=check_payloads,
        limit=limit,
        follow=follow,
        details=details,
        out=out,
        json=json,
    )
    decode_sources(sources, options)


def _split(
    arguments: list[str], protocols: list[str], packages: list[str] | None, grammars: Path | None
) -> tuple[list[str], list[str]]:
    """Return the protocols that are named, and the frames or sources; make the packages known."""
    first, rest = arguments[0], arguments[1:]
    named = [text.rpartition("=")[2] for text in protocols if text != AUTO]
    use_packages(packages, grammars, named or [first])
    is_place = first == STANDARD_INPUT or _exists(first)
    if rest and not protocols and (first in package_names() or not is_place):
        return [first], rest
    if not protocols and not is_place:
        names = package_names()
        if first in names:
            fail(f"what is to be decoded? name the frames of a message, a file, a folder, or - ({first} ...)")
        fail(f"there is no file, folder or protocol {_shortened(first)}{meant(first[:MAX_SHOWN], names)}")
    return protocols, arguments


def _are_sources(arguments: Sequence[str]) -> bool:
    """Whether arguments are places rather than frames; what is hexadecimal is a frame, even if there is such a file."""
    return all(
        text == STANDARD_INPUT or (not re.fullmatch(r"(?:[0-9a-fA-F]{2})*", text) and _exists(text))
        for text in arguments
    )


def _exists(text: str) -> bool:
    try:
        return Path(text).exists()
    except OSError:  # Among others, it is too long for a name.
        return False


def _shortened(text: str) -> str:
    return repr(text) if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]!r}… ({len(text):,} characters)"


def _only(named: list[str], frames: list[str]) -> str:
    if len(named) != 1 or named == [AUTO] or "=" in named[0]:
        fail(
            f"which protocol? one message is decoded as specwire decode PROTOCOL {frames[0][:MAX_SHOWN]} ..."
        )
    return named[0]


def _decode_one(
    protocol: str,
    frames: Sequence[str],
    *,
    strict: bool,
    sender: str | None,
    check_payloads: bool,
    json: bool,
) -> None:
    package = load_package(protocol)
    octets = [_octets(index, text) for index, text in enumerate(frames)]
    from specwire.runtime.pcap.choosing import sender_argument

    message = package.decode(octets, strict=strict, **sender_argument(package, sender))
    found = payload_of(package, message)
    if check_payloads and found is not None and found.fault:
        fail(found.fault)
    if json:
        payload = {} if found is None else {"payload": payload_object(found)}
        fields = plain(message.to_dict())
        print_json({"protocol": protocol, "message": type(message).__name__, "fields": fields, **payload})
        return
    show_message(package, message, octets)


def _octets(index: int, text: str) -> bytes:
    digits = re.sub(r"[\s:]", "", text.removeprefix("0x"))
    if re.fullmatch("[0-9a-fA-F]*", digits) is None:
        fail(f"frame {index} is not hexadecimal: {_shortened(text)}; nor is there such a file")
    if len(digits) % 2:
        fail(
            f"frame {index} has an odd number of hexadecimal digits ({len(digits):,}): {_shortened(text)};"
            " an octet has two, such as 07"
        )
    return bytes.fromhex(digits)
