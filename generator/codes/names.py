"""E2xx and W2xx: what names stand for, and rules that cannot be used."""

from __future__ import annotations

from specwire.generator.codes.row import Code

NAMES = (
    Code(
        "E201", "An undefined rule", "A name is used that neither the grammar nor RFC 5234 defines.",
        "A = %x01 boddy\nbody = *OCTET\n", "A = %x01 body\nbody = *OCTET\n",
    ),
    Code(
        "E202", "A rule defined in two ways", "Two rules of one name have different right-hand sides.",
        "A = %x01 x\nx = 2OCTET\nx = 4OCTET\n", "A = %x01 x\nx = 2OCTET\n",
    ),
    Code("E203", "A rule defined twice", "RFC 5234 wants each rule once.", 'a = "x"\na = "x"\n', 'a = "x"\n'),
    Code("E204", "'=/' without a rule to add to", "The first definition of a rule is written '='.", 'a =/ "x"\n', 'a = "x"\n'),
    Code(
        "W201", "A rule defined again, alike", "Both are read as one rule; the comments of both are kept.",
        "A = %x01 x\nx = 2OCTET\nx = 2OCTET\n", "A = %x01 x\nx = 2OCTET\n",
    ),
    Code("W202", "A name spelled with '_' and with '-'", "Both are read as one name.", "A = %x01 a_b\na-b = 2OCTET\n", "A = %x01 a-b\na-b = 2OCTET\n"),
    Code(
        "W203", "An unused rule", "No message, dialog or constant has to do with it, and the profile does not speak of it.",
        "A = %x01 x\nB = %x02 x\nx = 2OCTET\ny = *OCTET\n", "A = %x01 x\nB = %x02 y\nx = 2OCTET\ny = *OCTET\n",
        'name = "demo"\nmessages = ["A", "B"]\n', 'name = "demo"\nmessages = ["A", "B"]\n',
    ),
    Code("W204", "A name in another case", "Names are compared without case.", "A = %x01 Body\nbody = *OCTET\n", "A = %x01 body\nbody = *OCTET\n"),
    Code("W205", "A core rule in lower case", "It is read as the core rule.", "A = %x01 *octet\n", "A = %x01 *OCTET\n"),
    Code("W206", "FRAME, msg or JSON without a rule", "It is read as a ZeroMQ frame, all frames, or JSON text.", "A = %x01 x\nx = FRAME\n", "A = %x01 x\nx = *OCTET\n"),
    Code(
        "W207", "A rule that names only itself", "It stands for an external type, and gives way to the real rule.",
        "A = %x01 chunk\nchunk = chunk\nchunk = *OCTET\n", "A = %x01 chunk\nchunk = *OCTET\n",
    ),
    Code(
        "W208", "Left recursion", "A rule reaches itself before anything else: a parser that reads from the left never ends. "
        "As text it can be matched; as the layout of a message it is refused.",
        'list = list "," item / item\nitem = 1*ALPHA\n', 'list = item *( "," item )\nitem = 1*ALPHA\n',
    ),
    Code(
        "W209", "A rule that never ends", "Every way through the rule comes back to it, so no text and no message fits it.",
        'list = item "," list\nitem = 1*ALPHA\n', 'list = item [ "," list ]\nitem = 1*ALPHA\n',
    ),
    Code(
        "W210", "An alternative that is never reached", "An earlier alternative of the same rule already stands for everything that this one does.",
        'word = ALPHA / "b"\n', 'word = ALPHA / "-"\n',
    ),
)  # fmt: skip
