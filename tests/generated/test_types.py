"""What a type checker, and so an editor, knows of a package: everything, and of one build only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.generated.type_checker import check

PROGRAM = '''\
"""A program of a user."""

from specwire.generated import cmb1, filemq, flux
from specwire.generated.flux import Request
from specwire.generated.messages import Message

request = Request(topic="kvs.get", matchtag=7)
reveal_type(request.topic)  # str | None
reveal_type(request.encode())  # list[bytes]
reveal_type(request.replace(topic="a"))  # Request
reveal_type(flux.decode([]))  # Request | Response | Event | Control
reveal_type(flux.MESSAGES["Request"])  # type[Request] | type[Response] | type[Event] | type[Control]
reveal_type(flux.ACCELERATED)  # bool
reveal_type(flux.StreamDecoder().feed(b""))  # list[Request | Response | Event | Control]
reveal_type(filemq.Icanhaz("/").cache)  # tuple[tuple[str, str], ...]
reveal_type(flux.machine.Session("C"))  # Session
message: Message = request
match flux.decode([]):
    case flux.Request(routes, topic):
        reveal_type(routes)  # tuple[str, ...] | None
    case flux.Event() as event:
        reveal_type(event.sequence)  # int
    case _:
        pass
match cmb1.decode([]):
    case cmb1.Request(hops, topic):
        reveal_type(topic)  # str
    case _:
        pass
Request(nope=1)  # error: Unexpected keyword argument "nope" for "Request"
Request(topic=1)  # error: Argument "topic" to "Request" has incompatible type "int"; expected "str | None"
request.topic = "b"  # error: Property "topic" defined in "Request" is read-only
'''


@pytest.mark.slow
def test_a_type_checker_sees_every_class_and_field(tmp_path: Path) -> None:
    """Each line says in its comment what mypy says of it."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    told = check(program)
    said = dict(re.findall(r"^program\.py:(\d+): (?:note|error): (.*?)(?:  \[.*)?$", told, re.MULTILINE))
    shown = {
        number: text if (revealed := re.search(r'^Revealed type is "(.*)"$', text)) is None else revealed[1]
        for number, text in said.items()
    }
    wanted = {
        str(number): line.partition("  # ")[2].removeprefix("error: ")
        for number, line in enumerate(PROGRAM.splitlines(), start=1)
        if "  # " in line
    }
    assert {number: re.sub(r"(?:\w+\.)+(?=\w)", "", text) for number, text in shown.items()} == wanted
