"""E6xx: rules that ``specwire match`` cannot match a text against; the examples match rule ``a``."""

from __future__ import annotations

from specwire.generator.codes.row import Code

TEXTS = (
    Code(
        "E601",
        "Recursion that takes too long",
        "Matching a rule that contains itself is limited in time. This text has too many possible readings.",
        'a = a a a / [ a ] "x"\n',
        'a = *"x"\n',
    ),
    Code(
        "E602",
        "A prose value",
        "A prose value describes text in words, so no text can be matched against it.",
        "a = <any name>\n",
        "a = 1*ALPHA\n",
    ),
    Code(
        "E603",
        "An external type",
        "FRAME, msg and JSON are defined outside the grammar, so no text can be matched against them.",
        "a = FRAME\n",
        "a = *OCTET\n",
    ),
    Code(
        "E605",
        "A rule that matches no text",
        "Every alternative leads back to a rule that never ends.",
        'a = "x" a\n',
        'a = "x" [ a ]\n',
    ),
    Code(
        "E604",
        "A rule that is too large",
        "Each repetition of a group is expanded. A repetition of a character class is counted instead.",
        'a = 99999( "x" "y" )\n',
        'a = *( "x" "y" )\n',
    ),
)
