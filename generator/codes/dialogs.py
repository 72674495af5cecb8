"""E3xx and W3xx: dialog rules, and what the profile says about dialogs."""

from __future__ import annotations

from specwire.generator.codes.row import Code

_MESSAGES = "HELLO = %x01\nBYE = %x02\n"
_PROFILE = """\
name = "demo"
messages = ["HELLO", "BYE"]
[roles.C]
name = "client"
socket = "DEALER"
[roles.S]
name = "server"
socket = "ROUTER"
[[dialogs]]
name = "main"
rule = "dialog"
roles = ["C", "S"]
"""


def _row(
    code: str, title: str, meaning: str, wrong: str, right: str, more_wrong: str = "", more_right: str = ""
) -> Code:
    """A row whose examples are the dialog rule; what the profile says of the dialog goes behind `_PROFILE`."""
    return Code(
        code, title, meaning, wrong + _MESSAGES, right + _MESSAGES, _PROFILE + more_wrong, _PROFILE + more_right
    )  # fmt: skip


DIALOGS = (
    _row(
        "E301", "A message without its sender", "In a dialog each message says who sends it.",
        "dialog = *( C:HELLO BYE )\n", "dialog = *( C:HELLO S:BYE )\n",
    ),
    _row(
        "E302", "A dialog rule that contains itself", "A dialog is a regular expression: what repeats is written with '*'.",
        "dialog = C:HELLO [ S:BYE dialog ]\n", "dialog = *( C:HELLO S:BYE )\n",
    ),
    _row("E303", "An unknown role", "The dialog's roles are those that the profile lists.", "dialog = *( C:HELLO B:BYE )\n", "dialog = *( C:HELLO S:BYE )\n"),
    _row("E304", "A dialog in which nobody sends", "The rule names no message.", "dialog = *nothing\nnothing = 0C:HELLO\n", "dialog = *( C:HELLO S:BYE )\n"),
    _row("W304", "A dialog of one run", "Nothing in it repeats, so it is over after one exchange.", "dialog = C:HELLO S:BYE\n", "dialog = *( C:HELLO S:BYE )\n"),
    _row(
        "W305", "A message that can mean two things",
        "Only what follows tells which, and the concurrent reading does not wait: it takes the message for a reply, else it lets it open or close.",
        "dialog = *( C:HELLO S:BYE [ S:HELLO ] ) S:HELLO\n", "dialog = *( C:HELLO S:BYE ) S:HELLO\n",
    ),
    _row(
        "E305", "Too much counting in a dialog", "An automaton counts by having a state for each number: up to 16 times.",
        "dialog = *( 17C:HELLO S:BYE )\n", "dialog = *( 1*C:HELLO S:BYE )\n",
    ),
    _row("E306", "Octets in a dialog", "A dialog is made of messages; octets belong into the rules of messages.", "dialog = *( C:HELLO %x01 )\n", "dialog = *( C:HELLO S:BYE )\n"),
    _row("E307", "A dialog without its rule", "The profile names a dialog rule that is not defined.", "start = *( C:HELLO S:BYE )\n", "dialog = *( C:HELLO S:BYE )\n"),
    _row(
        "E308", "An error rule that is no alternation", "What ends a dialog at any time is one message out of several.",
        "dialog = *( C:HELLO S:BYE ) / fail\nfail = S:BYE C:BYE\n", "dialog = *( C:HELLO S:BYE ) / fail\nfail = S:BYE / C:BYE\n",
        'error = "fail"\n', 'error = "fail"\n',
    ),
    _row(
        "E309", "A dialog that cannot be so", "What the profile says about a dialog contradicts itself or the grammar.",
        "dialog = *( C:HELLO S:BYE )\n", "dialog = *( C:HELLO S:BYE )\n", 'symmetric = true\nunanswered = { x = 4 }\nkeyless = { x = 0 }\n', "",
    ),
    _row(
        "E310", "A key that no message has", "The fields that pair a reply with its request are fields of the dialog's messages.",
        "dialog = *( C:HELLO S:BYE )\n", "dialog = *( C:HELLO S:BYE )\n", 'key = ["tag"]\n', "",
    ),
)  # fmt: skip
