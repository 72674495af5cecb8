"""Whatever stands in the two files, compiling gives a protocol or a `SpecError`, never another exception.

The texts are grammars drawn from the syntax tree, and our own grammars and profiles with lines lost, moved
or changed. What compiles is JSON that reads back to the same protocol, and every emitter writes Python of it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from specwire.generator import ir
from specwire.generator.abnf.syntax import (
    Alternation,
    CharVal,
    Comment,
    Concatenation,
    Element,
    NumRange,
    NumVal,
    Option,
    ProseVal,
    Reference,
    Repetition,
    Rule,
    Rulelist,
    write_grammar,
)
from specwire.generator.diagnostics import Source, Span, SpecError
from specwire.generator.pipeline import compile_protocol
from specwire.generator.targets import choose_targets
from tests.examples import examples

GRAMMARS = Path(__file__).resolve().parents[2] / "grammars"
NOWHERE = Span(Source("", ""), 1, 1, 1, 1)
NAMES = (
    "a",
    "b",
    "c",
    "d",
    "sig",
    "size",
    "flags",
    "flag-a",
    "flag-b",
    "number-3",
    "OCTET",
    "VCHAR",
    "FRAME",
    "JSON",
    "msg",
)
COMMENTS = ("ZeroMQ frame", "a number", "written name=value", 'three """ quotes and \\ one', "")
PIECES = ("OCTET", "4OCTET", "*OCTET", "1*VCHAR", "%x01", "(", ")", "[", "]", "/", "|", "=", "=/", "FRAME", "C:", '"', ";", "\0",
          "\udc80", "\t", "\r", "9" * 5000, "999999999OCTET", "'''", '"""', "true", "-1", "nan", "[[rules]]", "type = 'octets'",
          "frame = true", "default = 7", "constant = 'x'", "presence = 'flag-topic'", "base = 'norfab'", "[types.a]")  # fmt: skip
BOUNDED = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])

references = st.builds(
    Reference, st.sampled_from(NAMES), st.sampled_from([None, None, "C", "S"]), st.just(NOWHERE)
)
octets = st.integers(0, 255)
leaves = st.one_of(
    references,
    st.builds(CharVal, st.sampled_from(["", "x", "GET", "="]), st.booleans(), st.just(NOWHERE)),
    st.builds(NumVal, st.lists(octets, min_size=1, max_size=4).map(tuple), st.just(NOWHERE)),
    st.builds(NumRange, st.integers(0, 60), st.integers(61, 300), st.just(NOWHERE)),
    st.just(ProseVal("some words", NOWHERE)),
)


def grow(inner: st.SearchStrategy[Element]) -> st.SearchStrategy[Element]:
    items = st.lists(inner, min_size=2, max_size=4).map(tuple)
    counts = st.sampled_from([(0, None), (1, None), (4, 4), (0, 0), (2, 3), (8, 8), (16, 16), (70000, 70000)])
    return st.one_of(
        st.builds(Concatenation, items, st.just(NOWHERE)),
        st.builds(Alternation, items, st.just(NOWHERE)),
        st.builds(Option, inner, st.just(NOWHERE)),
        st.builds(lambda c, e: Repetition(c[0], c[1], e, NOWHERE), counts, inner),
    )


comments = st.sampled_from(COMMENTS).map(lambda text: (Comment(text, NOWHERE),))
elements = st.recursive(leaves, grow, max_leaves=6)
rules = st.builds(lambda definition, words: (definition, words), elements, comments)
grammars = st.lists(rules, min_size=2, max_size=8).map(
    lambda found: write_grammar(
        Rulelist(
            tuple(
                Rule(NAMES[n], None, definition, False, (), words, NOWHERE, NOWHERE)
                for n, (definition, words) in enumerate(found)
            )
        )
    )
)

SHAPES = (
    "{0} = OCTET", "{0} = 4OCTET", "{0} = 3OCTET", "{0} = 16OCTET", "{0} = *OCTET", "{0} = 1*OCTET", "{0} = 1*( ALPHA / SP )",
    "{0} = %x00.00", '{0} = "READY"', "{0} = number-2", "{0} = string", "{0} = long", "{0} = number-2 *OCTET", "{0} = number-1 *string",
    "{0} = number-4 *number-2", "{0} = number-4 *( string long )", "{0} = number-1 *pair", "{0} = 2OCTET / none", "{0} = one / two",
    '{0} = "GET" / "PUT"', "{0} = *VCHAR %x00", "{0} = FRAME", "{0} = JSON", "{0} = string number-2", "{0} = flags", "{0} = 0OCTET",
)  # fmt: skip
COMMON = """
string = number-1 *VCHAR
long = number-4 *VCHAR
pair = string ; written name=value
none = %xFF.FF
one = %x01
two = %x02
number-1 = 1OCTET
number-2 = 2OCTET
number-4 = 4OCTET
flags = OCTET
flag-b = %x01
flag-c = %x02
flag-other = %x80
"""
USES = ("{0}", "{0}", "{0}", "[ {0} ]", "*{0}", "( {0} )")


@st.composite
def shaped(draw: st.DrawFn) -> str:
    """Grammars as specifications of the family write them: two messages that share some values."""
    names = ("b", "c", "d", "class", "name", "frames", "self", "encode")
    lines = ["list = first / second"]
    for number, message in enumerate(("first", "second"), start=1):
        used = draw(st.lists(st.sampled_from(names), max_size=5, unique=True))
        uses = " ".join(draw(st.sampled_from(USES)).format(name) for name in used)
        lines.append(
            f"{message} = {draw(st.sampled_from(['%xAA', 'head', 'flags']))} %x0{number} {uses} ; {draw(st.sampled_from(COMMENTS))}"
        )
    lines.append("head = %xAA %xA1")
    for name in names:
        lines.append(f"{draw(st.sampled_from(SHAPES)).format(name)} ; {draw(st.sampled_from(COMMENTS))}")
    return "\n".join(lines) + COMMON


def check(files: dict[str, str]) -> ir.Protocol | None:
    """Compile the protocol ``demo`` of `files`; None where it has faults, whose text can be printed."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(text.encode("utf-8", "surrogateescape"))
        try:
            protocol = compile_protocol(Path(folder, "demo"), shown="demo").protocol
        except SpecError as error:
            assert str(error).encode()
            assert error.diagnostics
            return None
    assert msgspec.json.decode(msgspec.json.encode(protocol), type=ir.Protocol) == protocol
    return protocol


def emitted(protocol: ir.Protocol) -> None:
    for target in choose_targets():
        for name, text in target.emit(protocol).items():
            if name.endswith(".py"):
                compile(text, name, "exec")


EMPTY_FRAME = 'a = 4""  ; ZeroMQ frame\nsession = C:a  ; one message, of a frame without octets\n'


@BOUNDED
@given(grammars, st.sampled_from(["", 'name = "demo"\nmessages = ["a", "b"]\n']))
@example(EMPTY_FRAME, "")
def test_random_grammars(grammar: str, profile: str) -> None:
    files = {"demo/grammar.abnf": grammar} | ({"demo/profile.toml": profile} if profile else {})
    if protocol := check(files):
        emitted(protocol)


@BOUNDED
@given(shaped())
def test_grammars_of_the_family(grammar: str) -> None:
    if protocol := check({"demo/grammar.abnf": grammar}):
        emitted(protocol)


@BOUNDED
@given(st.data(), st.sampled_from(sorted(path.name for path in GRAMMARS.iterdir())))
def test_our_grammars_changed(data: st.DataObject, name: str) -> None:
    files = {
        f"{'demo' if path.parent.name == name else path.parent.name}/{path.name}": path.read_text("utf-8")
        for path in sorted(GRAMMARS.glob("*/*.*"))
        if path.parent.name in (name, "norfab")
    }
    changed = data.draw(st.sampled_from(sorted(path for path in files if path.startswith("demo/"))))
    lines = files[changed].split("\n")
    for _ in range(data.draw(st.integers(1, 3))):
        here, there = data.draw(st.integers(0, len(lines) - 1)), data.draw(st.integers(0, len(lines) - 1))
        match data.draw(st.integers(0, 3)):
            case 0:
                lines[here] = ""
            case 1:
                lines[here], lines[there] = lines[there], lines[here]
            case 2:
                words = lines[here].split(" ")
                words[data.draw(st.integers(0, len(words) - 1))] = data.draw(st.sampled_from(PIECES))
                lines[here] = " ".join(words)
            case _:
                lines.insert(here, lines[there])
    files[changed] = "\n".join(lines)
    if protocol := check(files):
        emitted(protocol)


@BOUNDED
@given(st.text(max_size=80), st.text(max_size=80))
def test_any_text(grammar: str, profile: str) -> None:
    check(
        {
            "demo/grammar.abnf": grammar.encode("utf-8", "replace").decode(),
            "demo/profile.toml": profile.encode("utf-8", "replace").decode(),
        }
    )


@pytest.mark.parametrize(
    "grammar",
    [
        "",
        "\0",
        "\udcff",
        "a = b\nb = a\n",
        "a = a\n",
        "a = %x01 a\n",
        "a = %x01 " + "( " * 3000 + "OCTET" + " )" * 3000,
        "a = %x01 b\n" + "".join(f"b{n} = b{n + 1}\n" for n in range(3000)) + "b = b0\nb3000 = OCTET\n",
        "a = %x01 " + "9" * 6000 + "OCTET\n",
        "a = " + "%x01 " * 30000 + "\n",
        "a = b\n" + "b = %x01\n" * 3000,
    ],
)
def test_odd_grammars(grammar: str) -> None:
    check({"demo/grammar.abnf": grammar})
