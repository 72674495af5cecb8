"""Dialog rules become dialogs: strict automata, concurrent lifecycles, and diagnostics."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec
import pytest

from specwire import generator
from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.diagnostics import Diagnostics, Source
from specwire.generator.ir.dialogs import Dialog, DialogSettings, Reply, Start, Transition
from specwire.generator.ir.names import class_name
from specwire.generator.passes.dialog import build_dialogs, senders
from specwire.generator.passes.resolve import Grammar, resolve_names
from specwire.generator.profile.tables import LoadedProfile, Profile
from tests.golden_files import cases, check_golden

FILEMQ = """
filemq-protocol = open-peering *use-peering [ close-peering ]
open-peering    = C:OHAI ( S:OHAI-OK / error )
use-peering     = C:ICANHAZ ( S:ICANHAZ-OK / error )
                / C:NOM
                / S:CHEEZBURGER
                / C:HUGZ S:HUGZ-OK
                / S:HUGZ C:HUGZ-OK
close-peering   = C:KTHXBAI / S:KTHXBAI
error           = S:SRSLY / S:RTFM / S:WAT
"""
CMB1 = "cmb = C:REQUEST *S:RESPONSE / S:EVENT / C:KEEPALIVE\n"
WORKER = """
worker = [ W:OPEN B:OPEN ] W:READY *( B:POST *W:RESPONSE / B:GET *W:RESPONSE / W:KEEPALIVE / B:KEEPALIVE )
         [ W:DISCONNECT / B:DISCONNECT ]
"""


def read(text: str) -> tuple[Grammar, dict[str, str]]:
    """Return the grammar of `text`, and the classes of its messages: the names in capital letters.

    Messages that the text does not define are added to it.
    """
    words = dict.fromkeys(re.findall(r"[CSBW]:([A-Z][A-Z-]*)", text))
    missing = [word for word in words if not re.search(rf"(?m)^(\w:)?{word} ", text)]
    source = Source("input.abnf", text + "".join(f"{word} = %x01\n" for word in missing))
    diagnostics = Diagnostics()
    grammar = resolve_names(
        [parse_grammar(source, dialect="zeromq", diagnostics=diagnostics)], diagnostics=diagnostics
    )
    diagnostics.raise_errors()
    messages = [str(rule) for rule in grammar.rules if rule.name.isupper()]
    return grammar, {message: class_name(message) for message in messages}


def build(text: str, settings: DialogSettings) -> Dialog:
    """Return the one dialog that `settings` names, which has to be without an error."""
    grammar, classes = read(text)
    diagnostics = Diagnostics()
    (dialog,) = build_dialogs(grammar, [settings], classes, diagnostics)
    diagnostics.raise_errors()
    return dialog


def filemq() -> Dialog:
    return build(FILEMQ, DialogSettings("peering", "filemq-protocol", ("C", "S"), error="error"))


@pytest.mark.parametrize("case", cases("dialog"), ids=lambda case: case.name)
def test_diagnostics(case: Path) -> None:
    """What a user reads when a dialog has faults, letter by letter."""
    grammar, classes = read((case / "input.abnf").read_text(encoding="utf-8"))
    text = (case / "profile.toml").read_text(encoding="utf-8")
    settings = msgspec.convert(tomllib.loads(text)["dialogs"], tuple[DialogSettings, ...])
    profile = LoadedProfile(Profile(name="case"), Source("profile.toml", text))
    diagnostics = Diagnostics()
    build_dialogs(grammar, settings, classes, diagnostics, place=profile.span_of)
    check_golden(case / "stderr.txt", "".join(f"{found.render()}\n" for found in diagnostics))


def test_every_code_has_a_case() -> None:
    passes = Path(generator.__file__).parent / "passes"
    texts = [path.read_text("utf-8") for path in passes.glob("dialog*.py")]
    defined = {code for text in texts for code in re.findall(r'"([EW]3\d\d)"', text)}
    shown = {
        code
        for case in (*cases("dialog"), *cases("compile"))
        for code in re.findall(r"\[([EW]3\d\d)\]", (case / "stderr.txt").read_text("utf-8"))
    }
    assert shown == defined


def test_filemq_strict_dialog_has_seven_states_and_fifteen_labels() -> None:
    dialog = filemq()
    assert [state.name for state in dialog.strict] == [
        "START",
        "C_OHAI",
        "USE",
        "C_ICANHAZ",
        "C_HUGZ",
        "S_HUGZ",
        "CLOSED",
    ]
    assert len(dialog.labels) == 15
    assert [state.name for state in dialog.strict if state.accepting] == ["USE", "CLOSED"]


def test_filemq_lifecycle_follows_the_shape_of_the_rule() -> None:
    """What stands before the repetition opens, its alternatives are exchanges, what follows it closes."""
    start, opening, use, closed = filemq().concurrent.phases
    assert (start.moves, start.starts) == ((Transition("C:Ohai", "C_OHAI"),), ())
    assert [move.target for move in opening.moves] == ["USE", "CLOSED", "CLOSED", "CLOSED"]
    assert [(one.label, one.place) for one in use.starts] == [
        ("C:Icanhaz", "C_ICANHAZ"),
        ("C:Nom", None),
        ("S:Cheezburger", None),
        ("C:Hugz", "C_HUGZ"),
        ("S:Hugz", "S_HUGZ"),
    ]
    closing = ["C:Kthxbai", "S:Kthxbai", "S:Srsly", "S:Rtfm", "S:Wat"]
    assert use.moves == tuple(Transition(label, "CLOSED") for label in closing)
    assert (closed.name, closed.closed) == ("CLOSED", True)
    assert filemq().concurrent.places == ("C_ICANHAZ", "C_HUGZ", "S_HUGZ")


def test_cmb1_as_written_has_three_states_and_four_labels() -> None:
    dialog = build(CMB1, DialogSettings("rpc", "cmb", ("C", "S")))
    assert len(dialog.strict) == 3
    assert len(dialog.labels) == 4


def test_repeated_exchange_is_all_use() -> None:
    dialog = build(CMB1, DialogSettings("rpc", "cmb", ("C", "S"), repeat=True))
    assert [state.name for state in dialog.strict] == ["USE", "C_REQUEST"]
    (use,) = dialog.concurrent.phases
    assert use.starts[0] == Start("C:Request", "USE", "C_REQUEST")
    assert dialog.concurrent.replies == (Reply("S:Response", "C_REQUEST", "C_REQUEST"),)


def test_symmetric_dialog_lets_either_side_start() -> None:
    settings = DialogSettings("rpc", "cmb", ("C", "S"), repeat=True, symmetric=True)
    dialog = build(CMB1, settings)
    assert {"S:Request", "C:Response", "C:Event", "S:Keepalive"} < set(dialog.labels)
    assert [reply.label for reply in dialog.concurrent.replies] == ["S:Response", "C:Response"]
    assert len(dialog.strict) == 2, "the strict reading is the rule as written"
    assert senders([dialog]) == dict.fromkeys(("Request", "Response", "Event", "Keepalive"), ("C", "S"))


def test_optional_opening_is_not_waited_for() -> None:
    """OPEN may come only first; B:OPEN may come at any time after it."""
    dialog = build(WORKER, DialogSettings("worker", "worker", ("W", "B")))
    start, opened, use, closed = dialog.concurrent.phases
    assert start.starts == (Start("W:Open", "W_OPEN", "W_OPEN"),)
    assert [phase.name for phase in (opened, use, closed)] == ["W_OPEN", "USE", "CLOSED"]
    assert Reply("B:Open", "W_OPEN", None) in dialog.concurrent.replies
    assert "W:Open" not in {one.label for phase in (opened, use) for one in phase.starts}


def test_dialog_without_closing_closes_on_errors() -> None:
    settings = DialogSettings("d", "d", ("C", "S"), error="error")
    dialog = build("d = *( C:ASK S:TELL / error )\nerror = S:BAD\n", settings)
    use, closed = dialog.concurrent.phases
    assert (use.name, use.moves) == ("USE", (Transition("S:Bad", "CLOSED"),))
    assert closed.closed


def test_alternatives_that_start_alike_are_one_exchange() -> None:
    text = "d = *( C:ASK S:YES / S:NEWS / C:ASK S:NO / C:ASK S:WAIT S:YES )\n"
    dialog = build(text, DialogSettings("d", "d", ("C", "S")))
    assert dialog.concurrent.places == ("C_ASK", "S_WAIT")
    assert dialog.concurrent.replies == (
        Reply("S:Yes", "S_WAIT", None),
        Reply("S:Yes", "C_ASK", None),
        Reply("S:No", "C_ASK", None),
        Reply("S:Wait", "C_ASK", "S_WAIT"),
    )


def test_alternatives_are_joined_by_a_later_one() -> None:
    text = "d = *( C:ASK S:YES / C:TELL S:NO / ( C:ASK / C:TELL ) S:WAIT )\n"
    dialog = build(text, DialogSettings("d", "d", ("C", "S")))
    assert [(one.label, one.place) for one in dialog.concurrent.phases[0].starts] == [
        ("C:Ask", "C_ASK"),
        ("C:Tell", "C_TELL"),
    ]
    assert {reply.place for reply in dialog.concurrent.replies if reply.label == "S:Wait"} == {
        "C_ASK",
        "C_TELL",
    }


def test_two_groups_are_two_phases() -> None:
    text = "d = *( C:ASK S:TELL ) C:NEXT *S:NEWS C:BYE\n"
    dialog = build(text, DialogSettings("d", "d", ("C", "S")))
    start, use, closed = dialog.concurrent.phases
    assert [one.label for one in start.starts] == ["C:Ask"]
    assert start.moves == (Transition("C:Next", "USE"),)
    assert [one.label for one in use.starts] == ["S:News"]
    assert use.moves == (Transition("C:Bye", closed.name),)


@pytest.mark.parametrize(
    ("rule", "states"),
    [("3C:NOM", 4), ("1*2C:NOM", 3), ("2*C:NOM", 3), ("0C:NOM S:NOM", 2), ("*3C:NOM S:OK", 5)],
)
def test_counted_repetition_is_expanded(rule: str, states: int) -> None:
    dialog = build(f"d = {rule}\n", DialogSettings("d", "d", ("C", "S")))
    assert len(dialog.strict) == states


def test_role_prefixed_message_goes_before_the_bare_one() -> None:
    grammar, _ = read("d = *( C:REQUEST / S:REQUEST )\n")
    classes = {"C:request": "FromClient", "request": "Bare"}
    (dialog,) = build_dialogs(grammar, [DialogSettings("d", "d", ("C", "S"))], classes, Diagnostics())
    assert dialog.labels == ("C:FromClient", "S:Bare")


def test_senders_are_in_the_order_of_the_roles() -> None:
    assert senders([filemq()])["Hugz"] == ("C", "S")
    assert senders([filemq()])["Srsly"] == ("S",)


def test_dialog_with_a_fault_is_left_out() -> None:
    grammar, classes = read("good = *C:HELLO\nbad = *HELLO\n")
    diagnostics = Diagnostics()
    settings = [DialogSettings(name, name, ("C",)) for name in ("bad", "good")]
    dialogs = build_dialogs(grammar, settings, classes, diagnostics)
    assert [dialog.name for dialog in dialogs] == ["good"]
    assert [found.code for found in diagnostics] == ["E301"]


def test_dialogs_print_as_json() -> None:
    dialog = filemq()
    assert msgspec.json.decode(msgspec.json.encode(dialog), type=Dialog) == dialog
