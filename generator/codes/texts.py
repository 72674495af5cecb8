"""E6xx: rules that a text cannot be matched against with ``specwire match``; the examples ask for rule ``a``."""

from __future__ import annotations

from specwire.generator.codes.row import Code

TEXTS = (
    Code(
        "E601", "Recursion that takes too long", "A text is matched against a rule that contains itself in bounded time; this text has too many readings.",
        'a = a a a / [ a ] "x"\n', 'a = *"x"\n',
    ),
    Code("E602", "A prose value", "What is said in words cannot be compared with a text.", "a = <any name>\n", "a = 1*ALPHA\n"),
    Code("E603", "An external type", "FRAME, msg and JSON stand for what no rule describes.", "a = FRAME\n", "a = *OCTET\n"),
    Code("E605", "A rule that no text matches", "Every way through the rule comes back to a rule that never ends.", 'a = "x" a\n', 'a = "x" [ a ]\n'),
    Code("E604", "A rule too large", "What repeats a group is copied; a class of characters is counted.", 'a = 99999( "x" "y" )\n', 'a = *( "x" "y" )\n'),
)  # fmt: skip
