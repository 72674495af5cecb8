"""E4xx: elements without a layout on the wire. W4xx: assumptions where the document states nothing.

Every W4xx is an assumption: ``specwire check --no-assumptions`` counts it as an error.
"""

from __future__ import annotations

from specwire.generator.codes.row import Code

_DEMO = 'name = "demo"\n'

LAYOUTS = (
    Code(
        "E401", "A rule without a type", "Neither its shape, nor a comment, nor the profile says what the rule is on the wire.",
        "A = %x01 x\nx = *many\nmany = ( 1OCTET 2OCTET / 3OCTET )\n", "A = %x01 x\nx = *OCTET\n",
    ),
    Code(
        "E402", "A type that the rule cannot have", "The profile declares what the grammar's octets do not allow.",
        "A = %x01 x\nx = 9OCTET\n", "A = %x01 x\nx = 8OCTET\n", _DEMO + '[types.x]\ntype = "integer"\n', _DEMO + '[types.x]\ntype = "integer"\n',
    ),
    Code(
        "E403", "An unknown flag", "`presence` names a rule that is no bit of the flags.",
        "A = [topic] head\nhead = %xAA flags ; ZeroMQ frame\nflags = OCTET\nflag-topic = %x01\ntopic = *VCHAR ; ZeroMQ frame\n",
        "A = [topic] head\nhead = %xAA flags ; ZeroMQ frame\nflags = OCTET\nflag-topic = %x01\ntopic = *VCHAR ; ZeroMQ frame\n",
        _DEMO + 'messages = ["A"]\n[types.topic]\npresence = "flag-tpoic"\n', _DEMO + 'messages = ["A"]\n[types.topic]\npresence = "flag-topic"\n',
    ),
    Code("E405", "An option without a layout", "Only frames, and the last values of a frame, can be left out.", "A = %x01 [ x ] y\nx = 2OCTET\ny = *OCTET\n", "A = %x01 x y\nx = 2OCTET\ny = *OCTET\n"),
    Code(
        "E406", "No single value", "What repeats as frames to the end of a message is one value each time.",
        "A = h *x\nh = %x01\nx = 2OCTET 3OCTET ; ZeroMQ frame\n", "A = h *x\nh = %x01\nx = *OCTET ; ZeroMQ frame\n",
        _DEMO + 'messages = ["A"]\n', _DEMO + 'messages = ["A"]\n',
    ),
    Code("E407", "An element without a layout", "It has neither a name nor a fixed value.", "A = %x01 *%x30-10FFFF\n", "A = %x01 *%x30-39\n"),
    Code("E409", "Two neighbours without end", "A value that takes all that is left of its frame has nothing behind it.", "A = %x01 x y\nx = *OCTET\ny = *OCTET\n", "A = %x01 x y\nx = number-2 *OCTET\ny = *OCTET\nnumber-2 = 2OCTET\n"),
    Code(
        "E410", "Frames that cannot be told apart", "Nothing in the message says whether a frame is there.",
        "A = h [ b ] c\nh = %x01 OCTET\nb = FRAME\nc = FRAME\n", "A = h c [ b ]\nh = %x01 OCTET\nb = FRAME\nc = FRAME\n",
        _DEMO + 'messages = ["A"]\n', _DEMO + 'messages = ["A"]\n',
    ),
    Code(
        "E411", "Messages that cannot be told apart", "Messages are known by constants, which stand in them at places that can be found.",
        "A = %x01 x\nB = %x01 x\nx = *OCTET\n", "A = %x01 x\nB = %x02 x\nx = *OCTET\n",
        _DEMO + 'messages = ["A", "B"]\n', _DEMO + 'messages = ["A", "B"]\n',
    ),
    Code("E412", "A message that contains itself", "A layout has to end: what repeats is written with '*' and a count.", "A = %x01 x\nx = OCTET [ x ]\n", "A = %x01 x\nx = *OCTET\n"),
    Code(
        "E413", "Rules too deep", "The rules of a message go at most 100 levels deep.",
        "A = %x01 r0\n" + "".join(f"r{n} = r{n + 1} OCTET\n" for n in range(60)) + "r60 = OCTET\n", "A = %x01 r0\nr0 = *OCTET\n",
    ),
    Code("E414", "A repeat beyond every message", "No value has more than 2,147,483,647 octets or elements.", "A = %x01 x\nx = 999999999999OCTET\n", "A = %x01 x\nx = *OCTET\n"),
    Code(
        "E416", "Members of an enumeration that are the same", "Each has a name and a value of its own.",
        "A = %x01 x\nx = one / two\none = %x01\ntwo = %x01\n", "A = %x01 x\nx = one / two\none = %x01\ntwo = %x02\n",
    ),
    Code(
        "E417", "A flag of another size", "A bit is written with as many octets as its flags have.",
        "A = %x01 flags\nflags = 2OCTET\nflag-x = %x01\n", "A = %x01 flags\nflags = 2OCTET\nflag-x = %x00.01\n", _DEMO + 'messages = ["A"]\n', _DEMO + 'messages = ["A"]\n',
    ),
    Code(
        "E418", "Names that collide", "Two things would have one name in the generated package.",
        "C:A = %x01 x\nS:A = %x02 x\nx = 2OCTET\n", "C:A = %x01 x\nS:B = %x02 x\nx = 2OCTET\n", _DEMO + 'messages = ["C:A", "S:A"]\n', _DEMO + 'messages = ["C:A", "S:B"]\n',
    ),
    Code(
        "E419", "Alternatives that cannot be told apart", "Each variant of a union begins with a constant of its own.",
        "A = %x01 x\nx = one / two\none = %x01 OCTET\ntwo = %x01 2OCTET\n", "A = %x01 x\nx = one / two\none = %x01 OCTET\ntwo = %x02 2OCTET\n",
    ),
    Code(
        "E420", "Messages without an end on a stream", "On a byte stream of whole messages each has a size, or is always as long.",
        "A = %x01 x\nx = *OCTET\n", "A = %x01 x\nx = 2OCTET\n", _DEMO + '[stream]\nunits = true\n', _DEMO,
    ),
    Code(
        "E421", "A size too small", "What the length in front of a value covers never fits: the shortest is longer than the length can say.",
        "A = %x01 x\nx = number-1 300*OCTET\nnumber-1 = OCTET\n", "A = %x01 x\nx = number-2 300*OCTET\nnumber-2 = 2OCTET\n",
    ),
    Code(
        "E422", "A value of more than an octet", "Each value of %x, %d or %b in a message is one octet, from 0 to 255.",
        "A = %x01 %xA10 x\nx = 2OCTET\n", "A = %x01 %xA1.00 x\nx = 2OCTET\n",
    ),
    Code(
        "E423", "An unsupported kind of number", "A comment calls an integer little-endian, signed, a float or a varint, but integers are generated as unsigned and big-endian. Declare the type in the profile to keep the octets, or to insist on the integer.",
        "A = %x01 x\nx = 4OCTET ; an integer in little-endian order\n", "A = %x01 x\nx = 4OCTET ; an integer in network order\n",
    ),
    Code(
        "E424", "Too many fields", "Each use of a rule is expanded. A message may have at most 1,000 fields. All messages of a protocol and the rules in them may have at most 10,000 fields, or ten for each element of the grammar if that is more. Their constants and patterns may have at most 1,000,000 characters.",
        "A = %x01 r0\n" + "".join(f"r{n} = r{n + 1} r{n + 1}\n" for n in range(10)) + "r10 = OCTET\n", "A = %x01 r0\nr0 = *r1\nr1 = OCTET\n",
    ),
    Code(
        "E426", "A case-insensitive string", "The document declares a string to be case-insensitive, but the generated code accepts and writes only the letters as spelt.",
        'A = %i"put" x\nx = *OCTET\n', 'A = %s"put" x\nx = *OCTET\n',
    ),
    Code("W401", "Taken for an integer", "A bare number of octets may be an integer or opaque.", "A = %x01 x\nx = 4OCTET\n", "A = %x01 x\nx = 4OCTET ; an integer in network order\n"),
    Code("W402", "Taken for a length", "An integer that is called a size counts the value behind it, or all that follows in its rule.", "A = %x01 size x\nsize = OCTET\nx = *OCTET\n", "A = %x01 x\nx = size *OCTET\nsize = OCTET\n"),
    Code("W403", "An option that depends on the one before", "Frames are counted: the second can only be there where the first is.", "A = h [ b ] [ c ]\nh = %x01\nb = FRAME\nc = FRAME\n", "A = h [ b [ c ] ]\nh = %x01\nb = FRAME\nc = FRAME\n", _DEMO + 'messages = ["A"]\n', _DEMO + 'messages = ["A"]\n'),
    Code("W404", "A most that is not checked", "A list has as many elements as its count says.", "A = %x01 x\nx = number-1 *9y\nnumber-1 = OCTET\ny = 4OCTET\n", "A = %x01 x\nx = number-1 *y\nnumber-1 = OCTET\ny = 4OCTET\n"),
    Code("W405", "Taken for a message", "Nothing says which rules are messages; this one begins with a constant, and nothing uses it.", "A = %x01 OCTET\nB = %x02 OCTET\n", "A = %x01 OCTET\nB = %x02 OCTET\n", "", _DEMO + 'messages = ["A", "B"]\n'),
    Code("W406", "A dialog of which nothing is generated", "A rule defines who sends what, but has a fault, so no state machine is generated from it.", "d = *( C:A B )\nA = %x01\nB = %x02\n", "d = *( C:A S:B )\nA = %x01\nB = %x02\n"),
    Code("W407", "NUL octets taken for padding", "Text of a fixed size ends with octets that are no part of it.", "A = %x01 x\nx = 16( VCHAR / %x00 )\n", "A = %x01 x\nx = 16( VCHAR / %x00 ) ; padded with NUL\n"),
    Code("W408", "A field that got a name", "An element has no name of its own, or shares it with another of the message.", "A = %x01 4OCTET\n", "A = %x01 x\nx = 4OCTET\n"),
    Code("W409", "A message without a constant", "Whatever is no other message is taken for it.", "A = %x01 x\nB = x\nx = *OCTET\n", "A = %x01 x\nB = %x02 x\nx = *OCTET\n", _DEMO + 'messages = ["A", "B"]\n', _DEMO + 'messages = ["A", "B"]\n'),
    Code(
        "W410", "Taken for a dialog", "A rule says who sends what, and the profile does not speak of it.",
        "d = *( C:A S:B )\nA = %x01\nB = %x02\n", "p = A / B\nA = %x01\nB = %x02\n",
    ),
    Code(
        "W411", "Several dialogs", "Several rules could be one dialog or several; each is taken for one of its own.",
        "d = *( C:A S:B )\ne = *( C:B S:A )\nA = %x01\nB = %x02\n", "d = *( C:A S:B )\nA = %x01\nB = %x02\n",
    ),
    Code(
        "W415", "Taken for one text", "An entry is called a pair, and nothing says where its name ends and its value begins.",
        "A = %x01 x\nx = number-1 *key-value\nkey-value = number-1 *VCHAR\nnumber-1 = OCTET\n", "A = %x01 x\nx = number-1 *key-value\nkey-value = number-1 *VCHAR ; name=value\nnumber-1 = OCTET\n",
    ),
    Code(
        "W416", "A special value without a name", "The names of an integer's special values are constants of the package.",
        "A = %x01 x\nx = 4OCTET / %xFF.FF.FF.FF\n", "A = %x01 x\nx = 4OCTET / x-any\nx-any = %xFF.FF.FF.FF\n",
    ),
    Code(
        "W414", "A flag by the beginning of its name", "A flag is taken to announce the optional part whose name begins as its own does.",
        "A = flags [ routing ]\nflags = OCTET\nflag-route = %x01\nrouting = FRAME\n", "A = flags [ route ]\nflags = OCTET\nflag-route = %x01\nroute = FRAME\n", _DEMO + 'messages = ["A"]\n', _DEMO + 'messages = ["A"]\n',
    ),
    Code(
        "W412", "A role that the profile lacks", "A dialog names a sender that the profile's roles do not have.",
        "d = *( C:A S:B )\nA = %x01\nB = %x02\n", "p = A / B\nA = %x01\nB = %x02\n", _DEMO + '[roles.C]\nname = "client"\nsocket = "DEALER"\n', _DEMO + '[roles.C]\nname = "client"\nsocket = "DEALER"\n',
    ),
    Code(
        "W417", "A string in other letters", "A diagram, an example or a sentence of the document shows a quoted string in other letters than the rule.",
        'A = "chirp" x ; the letters C H I R P\nx = *OCTET\n', 'A = %s"CHIRP" x ; the letters C H I R P\nx = *OCTET\n',
    ),
    Code(
        "W418", "Strings taken for case-sensitive", "Quoted strings are case-insensitive in RFC 5234, but most documents mean the letters as spelt. This document does not state which.",
        'A = "put" x\nx = *OCTET\n', 'A = "put" x\nx = *OCTET\n', _DEMO, _DEMO + 'case = "exact"\n',
    ),
    Code(
        "W419", "A fixed value that is not required", "A comment states the value that a field always has, but any value is accepted.",
        "A = %x01 x\nx = OCTET ; an integer, must be 1\n", "A = %x01 x\nx = OCTET ; an integer, must be 1\n", _DEMO, _DEMO + "[types.x]\nconstant = 1\n",
    ),
    Code(
        "W420", "Frames that only words describe", "Comments or prose mention several frames, but every message is generated as one frame.",
        "A = %x01 x ; followed by a topic frame\nx = *OCTET\n", "A = h topic\nh = %x01 ; ZeroMQ frame\ntopic = FRAME ; followed by a topic frame\n", _DEMO + 'messages = ["A"]\n', _DEMO + 'messages = ["A"]\n',
    ),
    Code(
        "W421", "Prose about another kind of number", "Prose of the document calls its numbers little-endian, signed, floats or varints, but integers are generated as unsigned and big-endian.",
        "A = %x01 x\nx = 4OCTET ; an integer\n", "A = %x01 x\nx = 4OCTET ; an integer\n",
        _DEMO + '[[prose]]\ntext = "little-endian"\nabout = "numbers"\n', _DEMO + '[types.x]\ntype = "integer"\n[[prose]]\ntext = "little-endian"\nabout = "numbers"\n',
    ),
    Code(
        "W422", "A size that is not compared", "A comment declares an integer to be the size of a value, but the integer is not directly before that value, so the two are not compared.",
        "A = %x01 n kind x\nn = OCTET ; an integer\nkind = OCTET ; an integer\nx = *OCTET ; n bytes\n", "A = %x01 kind n x\nn = OCTET ; an integer\nkind = OCTET ; an integer\nx = *OCTET ; n bytes\n",
        _DEMO, _DEMO + '[types.n]\nscope = "next"\n',
    ),
    Code(
        "W413", "A text that is not checked", "The pattern of the text would have more than 20,000 characters, so strict decoding accepts any text.",
        "A = %x01 x\nx = 1*( " + " / ".join(f'"word{n}"' for n in range(1_000)) + " )\n", "A = %x01 x\nx = 1*( ALPHA / DIGIT )\n",
    ),
)  # fmt: skip
