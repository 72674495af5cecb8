"""Short grammars that expand to a huge number of fields: every command ends with a protocol or a diagnostic.

The bound is 10 s of CPU time and 500 MB for any grammar. CPU time is measured in the child, so it does not depend on
the load of the machine; most examples take a tenth of a second. ``SPECWIRE_BOMBS`` is the number of examples;
`make fuzz` runs many.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specwire.generator.diagnostics import SpecError
from specwire.generator.pipeline import compile_protocol
from tests.generator.bomb_worker import COMMANDS, MAX_CPU_S, MAX_OCTETS, Worker
from tests.generator.bombs import Bomb, bombs
from tests.generator.compiling import compiled, write

BOMBS = int(os.environ.get("SPECWIRE_BOMBS", "30"))
PROFILE = 'name = "demo"\nmessages = ["m"]\n'


def levels(count: int, body: str, end: str) -> str:
    """Return a message `m`, and `count` rules, each of which uses the next one as `body` defines."""
    rules = "".join(f"r{n} = {body.format(r=f'r{n + 1}')}\n" for n in range(count))
    return f"m = %x01 r0\n{rules}r{count} = {end}\nsize = OCTET\nname = size *VCHAR\n"


KNOWN = {
    "thirty doublings": levels(30, "{r} {r}", "OCTET"),
    "lists of both": levels(24, "*{r} *{r}", "%x00"),
    "alternatives, then the same": levels(30, "( {r} / %x01 ) {r}", "OCTET"),
    "unions in a rule": levels(30, "( %x01 {r} / %x02 {r} )", "*OCTET"),
    "unions of runs": levels(30, "%x01 {r} {r} / %x02 {r}", "*OCTET"),
    "lists in lists": levels(30, "size *( {r} {r} )", "name"),
    "lists in brackets": levels(12, "*( *( *( {r} ) ) )", "*OCTET"),
    "sizes before runs": levels(40, "short-size {r} {r}", "OCTET") + "short-size = OCTET\n",
    "octets without number": levels(40, "16( {r} {r} )", "OCTET"),
    "words that double": levels(40, "{r} {r}", '"word"'),
    "text that doubles": levels(40, "{r} {r}", "1*VCHAR"),
    "repeats once or more in a dialog": "d = *( d0 )\n"
    + "".join(f"d{n} = 1*d{n + 1}\n" for n in range(90))
    + "d90 = C:m S:n\nm = %x01\nn = %x02\n",
    "a size in words for each message": "p = *( "
    + " / ".join(f"m{n}" for n in range(400))
    + " )\n"
    + "".join(
        f"m{n} = %x{n >> 8:02X}.{n & 255:02X} n{n} k x{n}\n"
        f"n{n} = 2OCTET ; an integer\nx{n} = *OCTET ; n{n + 1} bytes\n"
        for n in range(400)
    )
    + "k = OCTET ; an integer\n",
    "a chain of dialog rules with an undefined name": "m = %x01\n"
    + "".join(f"d{n} = d{n + 1}\n" for n in range(4_000))
    + "d4000 = C:m nothing\n",
    "a paragraph of many sentences": "Title\n\n    m = %x01 OCTET\n\n" + "One. Two.\n" * 20_000,
    "doublings in a dialog": "d = *( d0 )\n"
    + "".join(f"d{n} = d{n + 1} d{n + 1}\n" for n in range(30))
    + "d30 = C:m S:n\nm = %x01\nn = %x02\n",
}


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as running:
        yield running


def assert_bounded(worker: Worker, command: str, bomb: Bomb) -> None:
    cost = worker.run(command, bomb.grammar, bomb.profile)
    assert cost.status in (0, 1, 2), cost.error
    assert cost.cpu_s <= MAX_CPU_S
    assert cost.octets <= MAX_OCTETS


@settings(max_examples=BOMBS, suppress_health_check=list(HealthCheck))
@given(command=st.sampled_from(sorted(COMMANDS)), bomb=bombs())
def test_every_command_ends_soon(worker: Worker, command: str, bomb: Bomb) -> None:
    assert_bounded(worker, command, bomb)


@pytest.mark.parametrize("command", ["check", "import-edition"])
@pytest.mark.parametrize("name", KNOWN)
def test_known_bombs(worker: Worker, name: str, command: str) -> None:
    assert_bounded(worker, command, Bomb(KNOWN[name], ""))


def test_a_message_that_expands_too_much_is_reported_once(tmp_path: Path) -> None:
    grammar = levels(30, "{r} {r}", "OCTET") + "k = %x02 r0 r1\nj = %x03 name\n"
    with pytest.raises(SpecError) as raised:
        compile_protocol(
            write(tmp_path, grammar, 'name = "demo"\nmessages = ["m", "k", "j"]\n'), shown="demo"
        )
    found = Counter(diagnostic.message for diagnostic in raised.value.diagnostics)
    assert found == {f"message '{name}' expands to more than 1,000 fields": 1 for name in "mk"}
    assert len(re.findall("E424", str(raised.value))) == 2


@pytest.mark.parametrize(("doublings", "fields"), [(9, 512), (10, None)])
def test_the_bound_of_one_message(doublings: int, fields: int | None, tmp_path: Path) -> None:
    grammar = levels(doublings, "{r} {r}", "2OCTET ; a number")
    if fields is None:
        with pytest.raises(SpecError, match="E424"):
            compiled(tmp_path, grammar, PROFILE)
        return
    (message,) = compiled(tmp_path, grammar, PROFILE).protocol.messages
    assert len(message.fields) == fields + 1


def test_text_and_numbers_are_one_field_whatever_they_are_made_of(tmp_path: Path) -> None:
    words = " / ".join(f"%x{n >> 8:02X}.{n & 255:02X}" for n in range(2_000))
    text = "".join(f"t{n} = t{n + 1} t{n + 1}\n" for n in range(12)) + "t12 = ALPHA / DIGIT\n"
    grammar = f"m = %x01 kind t0\nkind = {words}\n{text}"
    (message,) = compiled(tmp_path, grammar, PROFILE).protocol.messages
    assert [field.name for field in message.fields] == ["id", "kind", "t0"]


def test_what_the_profile_calls_octets_is_one_field(tmp_path: Path) -> None:
    grammar = levels(12, "{r} {r}", "2OCTET ; a number")
    opaque = f'{PROFILE}[types.r0]\ntype = "octets"\n'
    (message,) = compiled(tmp_path, grammar, opaque).protocol.messages
    assert [field.name for field in message.fields] == ["id", "r0"]


def test_a_long_grammar_may_expand_to_more_than_a_short_one(tmp_path: Path) -> None:
    """The bound is ten fields for each element: here the messages share a header of thirty fields."""
    count = 500
    header = " ".join(f"h{n}" for n in range(30))
    grammar = "".join(f"m{n} = %x{n >> 8:02X}.{n & 255:02X} header a b c\n" for n in range(count))
    grammar += f"header = {header}\n" + "".join(f"h{n} = OCTET ; a number\n" for n in range(30))
    grammar += "a = OCTET ; a number\nb = OCTET ; a number\nc = OCTET ; a number\n"
    listed = ", ".join(f'"m{n}"' for n in range(count))
    protocol = compiled(tmp_path, grammar, f'name = "demo"\nmessages = [{listed}]\n').protocol
    assert sum(len(message.fields) for message in protocol.messages) == count * 34
