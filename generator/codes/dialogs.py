"""E3xx and W3xx: dialog rules, and the settings of dialogs in the profile."""

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
    """Return a row whose examples are dialog rules.

    `more_wrong` and `more_right` are appended to `_PROFILE`.
    """
    return Code(
        code,
        title,
        meaning,
        wrong + _MESSAGES,
        right + _MESSAGES,
        _PROFILE + more_wrong,
        _PROFILE + more_right,
    )


DIALOGS = (
    _row(
        "E301",
        "A message without a sender",
        "In a dialog rule, every message names its sender: 'C:HELLO'.",
        "dialog = *( C:HELLO BYE )\n",
        "dialog = *( C:HELLO S:BYE )\n",
    ),
    _row(
        "E302",
        "A dialog rule that contains itself",
        "A dialog rule is a regular expression. Write repetition with '*', not with recursion.",
        "dialog = C:HELLO [ S:BYE dialog ]\n",
        "dialog = *( C:HELLO S:BYE )\n",
    ),
    _row(
        "E303",
        "An unknown role",
        "The roles of a dialog are those listed in the profile.",
        "dialog = *( C:HELLO B:BYE )\n",
        "dialog = *( C:HELLO S:BYE )\n",
    ),
    _row(
        "E304",
        "A dialog without messages",
        "The dialog rule does not use any message.",
        "dialog = *nothing\nnothing = 0C:HELLO\n",
        "dialog = *( C:HELLO S:BYE )\n",
    ),
    _row(
        "W304",
        "A dialog that does not repeat",
        "The rule has no repetition, so the dialog ends after one exchange.",
        "dialog = C:HELLO S:BYE\n",
        "dialog = *( C:HELLO S:BYE )\n",
    ),
    _row(
        "W305",
        "An ambiguous message",
        "The message has two possible meanings, and only a later message shows which one applies. With "
        "concurrent requests, it is read as a reply if one is expected, otherwise as the start or the end "
        "of the dialog.",
        "dialog = *( C:HELLO S:BYE [ S:HELLO ] ) S:HELLO\n",
        "dialog = *( C:HELLO S:BYE ) S:HELLO\n",
    ),
    _row(
        "E305",
        "A repeat count that is too large in a dialog",
        "The generated automaton has one state for each repetition. A count in a dialog rule is at most 16.",
        "dialog = *( 17C:HELLO S:BYE )\n",
        "dialog = *( 1*C:HELLO S:BYE )\n",
    ),
    _row(
        "E306",
        "Octets in a dialog",
        "A dialog rule consists of messages. Write octets in the rules of the messages.",
        "dialog = *( C:HELLO %x01 )\n",
        "dialog = *( C:HELLO S:BYE )\n",
    ),
    _row(
        "E307",
        "A dialog without a rule",
        "The profile names a dialog rule that is not defined.",
        "start = *( C:HELLO S:BYE )\n",
        "dialog = *( C:HELLO S:BYE )\n",
    ),
    _row(
        "E308",
        "An error rule that is not an alternation",
        "The message that can end a dialog at any time is one of several alternatives.",
        "dialog = *( C:HELLO S:BYE ) / fail\nfail = S:BYE C:BYE\n",
        "dialog = *( C:HELLO S:BYE ) / fail\nfail = S:BYE / C:BYE\n",
        'error = "fail"\n',
        'error = "fail"\n',
    ),
    _row(
        "E309",
        "An impossible dialog",
        "The settings of a dialog in the profile contradict each other or the grammar.",
        "dialog = *( C:HELLO S:BYE )\n",
        "dialog = *( C:HELLO S:BYE )\n",
        "symmetric = true\nunanswered = { x = 4 }\nkeyless = { x = 0 }\n",
        "",
    ),
    _row(
        "E310",
        "An unknown key field",
        "The key fields that match a reply to its request must be fields of the dialog's messages.",
        "dialog = *( C:HELLO S:BYE )\n",
        "dialog = *( C:HELLO S:BYE )\n",
        'key = ["tag"]\n',
        "",
    ),
)
