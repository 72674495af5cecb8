"""E2xx and W2xx: names that cannot be resolved, and rules that cannot be used."""

from __future__ import annotations

from specwire.generator.codes.row import Code

NAMES = (
    Code(
        "E201",
        "An undefined rule",
        "The grammar uses a name that neither it nor RFC 5234 defines.",
        "A = %x01 boddy\nbody = *OCTET\n",
        "A = %x01 body\nbody = *OCTET\n",
    ),
    Code(
        "E202",
        "Two definitions of a rule",
        "Two rules of the same name have different definitions.",
        "A = %x01 x\nx = 2OCTET\nx = 4OCTET\n",
        "A = %x01 x\nx = 2OCTET\n",
    ),
    Code(
        "E203",
        "A rule defined twice",
        "RFC 5234 requires that each rule is defined once.",
        'a = "x"\na = "x"\n',
        'a = "x"\n',
    ),
    Code(
        "E204",
        "'=/' without a rule to extend",
        "The first definition of a rule uses '='.",
        'a =/ "x"\n',
        'a = "x"\n',
    ),
    Code(
        "W201",
        "A repeated definition",
        "Both definitions are equal and are read as one rule. The comments of both are kept.",
        "A = %x01 x\nx = 2OCTET\nx = 2OCTET\n",
        "A = %x01 x\nx = 2OCTET\n",
    ),
    Code(
        "W202",
        "A name spelled with both '_' and '-'",
        "Both spellings are read as the same name.",
        "A = %x01 a_b\na-b = 2OCTET\n",
        "A = %x01 a-b\na-b = 2OCTET\n",
    ),
    Code(
        "W203",
        "An unused rule",
        "No message, dialog or constant uses the rule, and the profile does not mention it.",
        "A = %x01 x\nB = %x02 x\nx = 2OCTET\ny = *OCTET\n",
        "A = %x01 x\nB = %x02 y\nx = 2OCTET\ny = *OCTET\n",
        'name = "demo"\nmessages = ["A", "B"]\n',
        'name = "demo"\nmessages = ["A", "B"]\n',
    ),
    Code(
        "W204",
        "A name in another case",
        "Rule names are not case-sensitive.",
        "A = %x01 Body\nbody = *OCTET\n",
        "A = %x01 body\nbody = *OCTET\n",
    ),
    Code(
        "W205",
        "A core rule in lower case",
        "The name is read as the core rule.",
        "A = %x01 *octet\n",
        "A = %x01 *OCTET\n",
    ),
    Code(
        "W206",
        "FRAME, msg or JSON without a rule",
        "The name is read as one ZeroMQ frame, as all frames, or as JSON text.",
        "A = %x01 x\nx = FRAME\n",
        "A = %x01 x\nx = *OCTET\n",
    ),
    Code(
        "W207",
        "A rule that names only itself",
        "The rule is read as a placeholder for an external type. A real definition of the same name "
        "replaces it.",
        "A = %x01 chunk\nchunk = chunk\nchunk = *OCTET\n",
        "A = %x01 chunk\nchunk = *OCTET\n",
    ),
    Code(
        "W208",
        "Left recursion",
        "The first element of the rule leads back to the rule, so a parser that reads from the left never "
        "ends. "
        "`specwire match` supports such rules; the layout of a message cannot use them.",
        'list = list "," item / item\nitem = 1*ALPHA\n',
        'list = item *( "," item )\nitem = 1*ALPHA\n',
    ),
    Code(
        "W209",
        "A rule that never ends",
        "Every alternative leads back to the rule, so no text and no message matches it.",
        'list = item "," list\nitem = 1*ALPHA\n',
        'list = item [ "," list ]\nitem = 1*ALPHA\n',
    ),
    Code(
        "W210",
        "An alternative that is never reached",
        "An earlier alternative of the rule already matches everything that this one matches.",
        'word = ALPHA / "b"\n',
        'word = ALPHA / "-"\n',
    ),
)
