"""E4xx: elements that cannot be laid out on the wire. W4xx: assumptions where the document is silent.

``specwire check --no-assumptions`` counts every W4xx as an error.
"""

from __future__ import annotations

from specwire.generator.codes.row import Code

_DEMO = 'name = "demo"\n'

LAYOUTS = (
    Code(
        "E401",
        "A rule without a type",
        "Neither the definition of the rule, nor a comment, nor the profile determines its type.",
        "A = %x01 x\nx = *many\nmany = ( 1OCTET 2OCTET / 3OCTET )\n",
        "A = %x01 x\nx = *OCTET\n",
    ),
    Code(
        "E402",
        "A type that does not fit the rule",
        "The profile declares a type that the rule's octets do not allow.",
        "A = %x01 x\nx = 9OCTET\n",
        "A = %x01 x\nx = 8OCTET\n",
        _DEMO + '[types.x]\ntype = "integer"\n',
        _DEMO + '[types.x]\ntype = "integer"\n',
    ),
    Code(
        "E403",
        "An unknown flag",
        "`presence` names a rule that is not a bit of the flags.",
        "A = [topic] head\nhead = %xAA flags ; ZeroMQ frame\nflags = OCTET\nflag-topic = %x01\n"
        "topic = *VCHAR ; ZeroMQ frame\n",
        "A = [topic] head\nhead = %xAA flags ; ZeroMQ frame\nflags = OCTET\nflag-topic = %x01\n"
        "topic = *VCHAR ; ZeroMQ frame\n",
        _DEMO + 'messages = ["A"]\n[types.topic]\npresence = "flag-tpoic"\n',
        _DEMO + 'messages = ["A"]\n[types.topic]\npresence = "flag-topic"\n',
    ),
    Code(
        "E405",
        "An option without a condition",
        "Nothing shows whether an optional value is present: it does not begin with a constant, the values "
        "after it vary in size, and the profile names no number that says so with `presence`.",
        "A = %x01 [ x ] y\nx = 2OCTET\ny = *OCTET\n",
        "A = %x01 x y\nx = 2OCTET\ny = *OCTET\n",
    ),
    Code(
        "E406",
        "A repeated frame with several values",
        "A frame that repeats to the end of a message must hold a single value.",
        "A = h *x\nh = %x01\nx = 2OCTET 3OCTET ; ZeroMQ frame\n",
        "A = h *x\nh = %x01\nx = *OCTET ; ZeroMQ frame\n",
        _DEMO + 'messages = ["A"]\n',
        _DEMO + 'messages = ["A"]\n',
    ),
    Code(
        "E407",
        "An element without a layout",
        "The element has neither a name nor a fixed value.",
        "A = %x01 *%x30-10FFFF\n",
        "A = %x01 *%x30-39\n",
    ),
    Code(
        "E409",
        "A value after one without an end",
        "A value that extends to the end of its frame cannot be followed by another value.",
        "A = %x01 x y\nx = *OCTET\ny = *OCTET\n",
        "A = %x01 x y\nx = number-2 *OCTET\ny = *OCTET\nnumber-2 = 2OCTET\n",
    ),
    Code(
        "E410",
        "Frames that cannot be distinguished",
        "Nothing in the message shows whether an optional frame is present.",
        "A = h [ b ] c\nh = %x01 OCTET\nb = FRAME\nc = FRAME\n",
        "A = h c [ b ]\nh = %x01 OCTET\nb = FRAME\nc = FRAME\n",
        _DEMO + 'messages = ["A"]\n',
        _DEMO + 'messages = ["A"]\n',
    ),
    Code(
        "E411",
        "Messages that cannot be distinguished",
        "A decoder identifies a message by constants at positions that it can compute.",
        "A = %x01 x\nB = %x01 x\nx = *OCTET\n",
        "A = %x01 x\nB = %x02 x\nx = *OCTET\n",
        _DEMO + 'messages = ["A", "B"]\n',
        _DEMO + 'messages = ["A", "B"]\n',
    ),
    Code(
        "E412",
        "A message that contains itself",
        "A rule may contain itself if it ends without that, begins with something else, and its end is "
        "defined.",
        "A = %x01 x\nx = OCTET [ x ]\n",
        "A = %x01 x\nx = *OCTET\n",
    ),
    Code(
        "E413",
        "Rules nested too deeply",
        "The rules of a message are nested at most 100 levels deep.",
        "A = %x01 r0\n" + "".join(f"r{n} = r{n + 1} OCTET\n" for n in range(60)) + "r60 = OCTET\n",
        "A = %x01 r0\nr0 = *OCTET\n",
    ),
    Code(
        "E414",
        "A repeat count that is too large",
        "A value has at most 2,147,483,647 octets or elements.",
        "A = %x01 x\nx = 999999999999OCTET\n",
        "A = %x01 x\nx = *OCTET\n",
    ),
    Code(
        "E416",
        "Identical members of an enumeration",
        "Each member of an enumeration needs a different name and a different value.",
        "A = %x01 x\nx = one / two\none = %x01\ntwo = %x01\n",
        "A = %x01 x\nx = one / two\none = %x01\ntwo = %x02\n",
    ),
    Code(
        "E417",
        "A flag of a different size",
        "A flag bit is written with as many octets as its flags field.",
        "A = %x01 flags\nflags = 2OCTET\nflag-x = %x01\n",
        "A = %x01 flags\nflags = 2OCTET\nflag-x = %x00.01\n",
        _DEMO + 'messages = ["A"]\n',
        _DEMO + 'messages = ["A"]\n',
    ),
    Code(
        "E418",
        "Names that collide",
        "Two elements would have the same name in the generated package.",
        "C:A = %x01 x\nA = %x02 x\nx = 2OCTET\n",
        "C:A = %x01 x\nS:A = %x02 x\nx = 2OCTET\n",
        _DEMO + 'messages = ["C:A", "A"]\n',
        _DEMO + 'messages = ["C:A", "S:A"]\n',
    ),
    Code(
        "E419",
        "Alternatives that cannot be distinguished",
        "Each alternative of a union must begin with a constant that no other alternative can begin with.",
        "A = %x01 x\nx = one / two\none = %x01 OCTET\ntwo = %x01 2OCTET\n",
        "A = %x01 x\nx = one / two\none = %x01 OCTET\ntwo = %x02 2OCTET\n",
    ),
    Code(
        "E420",
        "Messages without an end on a stream",
        "On a byte stream of whole messages, each message must say where it ends: by a length or count, a "
        "terminator, or a fixed size. The octets after it must not be needed to find its end, nor to distinguish it "
        "from other messages.",
        "A = %x01 x\nx = *OCTET\n",
        "A = %x01 size x\nsize = 2OCTET\nx = *OCTET\n",
        _DEMO + "[stream]\nunits = true\n",
        _DEMO + '[stream]\nunits = true\n[types.size]\norder = "little"\n',
    ),
    Code(
        "E421",
        "A length field that is too small",
        "The shortest value is longer than the largest number that the length field can hold.",
        "A = %x01 x\nx = number-1 300*OCTET\nnumber-1 = OCTET\n",
        "A = %x01 x\nx = number-2 300*OCTET\nnumber-2 = 2OCTET\n",
    ),
    Code(
        "E422",
        "A value of more than one octet",
        "Each %x, %d or %b value in a message is one octet, from 0 to 255.",
        "A = %x01 %xA10 x\nx = 2OCTET\n",
        "A = %x01 %xA1.00 x\nx = 2OCTET\n",
    ),
    Code(
        "E423",
        "An unsupported kind of number",
        "A comment calls an integer little-endian, signed, a float or a varint, but it is generated as "
        "another kind of number. A comment of the integer's own rule is followed if it is unambiguous and the profile "
        'does not declare a plain `type = "integer"`; otherwise the profile must say what the integer is: '
        "`order`, `signed` or `type`.",
        "A = %x01 x\nx = 4OCTET ; an integer in host byte order\n",
        "A = %x01 x\nx = 4OCTET ; an integer in little-endian order\n",
    ),
    Code(
        "E424",
        "Too many fields",
        "Each use of a rule is expanded. A message may have at most 1,000 fields. All messages of a "
        "protocol and the rules in them may have at most 10,000 fields, or ten for each element of the "
        "grammar if that is more. Their constants and patterns may have at most 1,000,000 characters.",
        "A = %x01 r0\n" + "".join(f"r{n} = r{n + 1} r{n + 1}\n" for n in range(10)) + "r10 = OCTET\n",
        "A = %x01 r0\nr0 = *r1\nr1 = OCTET\n",
    ),
    Code(
        "E430",
        "Characters without an end",
        "Digits of varying number are read up to the first octet that is no digit, and so are other "
        "characters; what follows must begin with something else.",
        "A = %x01 x y\nx = 1*DIGIT\ny = *OCTET\n",
        "A = %x01 x %x20 y\nx = 1*DIGIT\ny = *OCTET\n",
        _DEMO + '[types.x]\ntype = "decimal"\n',
        _DEMO + '[types.x]\ntype = "decimal"\n',
    ),
    Code(
        "E431",
        "A counter or checksum that does not fit",
        "`counts` must name adjacent fields after an unsigned number in the same frame or rule. `over` must name "
        "fields of the same frame or rule, and `checksum` an algorithm whose result the integer can hold.",
        "A = %x01 x n\nn = OCTET\nx = 2OCTET\n",
        "A = %x01 n y x\nn = OCTET\ny = 2OCTET\nx = *OCTET\n",
        _DEMO + '[types.n]\ncounts = "x"\n[types.x]\ntype = "octets"\n',
        _DEMO + '[types.n]\ncounts = "x"\n[types.y]\ntype = "octets"\n',
    ),
    Code(
        "W401",
        "An assumed integer",
        "The rule is a fixed number of octets and is read as an unsigned integer. It could also be opaque "
        "octets.",
        "A = %x01 x\nx = 4OCTET\n",
        "A = %x01 x\nx = 4OCTET ; an integer in network order\n",
    ),
    Code(
        "W402",
        "An assumed length",
        "An integer called a size is read as the length of the value after it, or of the rest of its rule.",
        "A = %x01 size x\nsize = OCTET\nx = *OCTET\n",
        "A = %x01 x\nx = size *OCTET\nsize = OCTET\n",
    ),
    Code(
        "W403",
        "An option that depends on the one before",
        "Frames are counted, so the second optional frame can only be present if the first is.",
        "A = h [ b ] [ c ]\nh = %x01\nb = FRAME\nc = FRAME\n",
        "A = h [ b [ c ] ]\nh = %x01\nb = FRAME\nc = FRAME\n",
        _DEMO + 'messages = ["A"]\n',
        _DEMO + 'messages = ["A"]\n',
    ),
    Code(
        "W404",
        "A maximum that is not checked",
        "The number of elements of a list is the value of its count.",
        "A = %x01 x\nx = number-1 *9y\nnumber-1 = OCTET\ny = 4OCTET\n",
        "A = %x01 x\nx = number-1 *y\nnumber-1 = OCTET\ny = 4OCTET\n",
    ),
    Code(
        "W405",
        "An assumed message",
        "Nothing defines which rules are messages. This rule begins with a constant, and no rule uses it.",
        "A = %x01 OCTET\nB = %x02 OCTET\n",
        "A = %x01 OCTET\nB = %x02 OCTET\n",
        "",
        _DEMO + 'messages = ["A", "B"]\n',
    ),
    Code(
        "W406",
        "A dialog from which nothing is generated",
        "A rule defines who sends what but has a fault, so no state machine is generated from it.",
        "d = *( C:A B )\nA = %x01\nB = %x02\n",
        "d = *( C:A S:B )\nA = %x01\nB = %x02\n",
    ),
    Code(
        "W407",
        "Assumed padding",
        "NUL octets at the end of text of fixed size are read as padding, not as content.",
        "A = %x01 x\nx = 16( VCHAR / %x00 )\n",
        "A = %x01 x\nx = 16( VCHAR / %x00 ) ; padded with NUL\n",
    ),
    Code(
        "W408",
        "A field with a generated name",
        "An element has no name, or the same name as another element of the message.",
        "A = %x01 4OCTET\n",
        "A = %x01 x\nx = 4OCTET\n",
    ),
    Code(
        "W409",
        "A message without a constant",
        "Anything that is no other message is read as this message.",
        "A = %x01 x\nB = x\nx = *OCTET\n",
        "A = %x01 x\nB = %x02 x\nx = *OCTET\n",
        _DEMO + 'messages = ["A", "B"]\n',
        _DEMO + 'messages = ["A", "B"]\n',
    ),
    Code(
        "W410",
        "An assumed dialog",
        "A rule states who sends which message, and the profile does not mention it.",
        "d = *( C:A S:B )\nA = %x01\nB = %x02\n",
        "p = A / B\nA = %x01\nB = %x02\n",
    ),
    Code(
        "W411",
        "Several dialogs",
        "Several rules could form one dialog or several. Each is read as a separate dialog.",
        "d = *( C:A S:B )\ne = *( C:B S:A )\nA = %x01\nB = %x02\n",
        "d = *( C:A S:B )\nA = %x01\nB = %x02\n",
    ),
    Code(
        "W415",
        "An assumed text",
        "An entry is called a pair, but nothing defines where its name ends and its value begins. It is "
        "read as one text.",
        "A = %x01 x\nx = number-1 *key-value\nkey-value = number-1 *VCHAR\nnumber-1 = OCTET\n",
        "A = %x01 x\nx = number-1 *key-value\nkey-value = number-1 *VCHAR ; name=value\nnumber-1 = OCTET\n",
    ),
    Code(
        "W416",
        "A special value without a name",
        "The named special values of an integer become constants of the package. This value has no name.",
        "A = %x01 x\nx = 4OCTET / %xFF.FF.FF.FF\n",
        "A = %x01 x\nx = 4OCTET / x-any\nx-any = %xFF.FF.FF.FF\n",
    ),
    Code(
        "W414",
        "A flag matched by the start of its name",
        "A flag is read as announcing the optional part whose name begins with the same letters.",
        "A = flags [ routing ]\nflags = OCTET\nflag-route = %x01\nrouting = FRAME\n",
        "A = flags [ route ]\nflags = OCTET\nflag-route = %x01\nroute = FRAME\n",
        _DEMO + 'messages = ["A"]\n',
        _DEMO + 'messages = ["A"]\n',
    ),
    Code(
        "W412",
        "A role that is not in the profile",
        "A dialog names a sender that is not among the roles of the profile.",
        "d = *( C:A S:B )\nA = %x01\nB = %x02\n",
        "p = A / B\nA = %x01\nB = %x02\n",
        _DEMO + '[roles.C]\nname = "client"\nsocket = "DEALER"\n',
        _DEMO + '[roles.C]\nname = "client"\nsocket = "DEALER"\n',
    ),
    Code(
        "W417",
        "A string in other letters",
        "A diagram, an example or a sentence of the document spells a quoted string in different letters "
        "from the rule.",
        'A = "chirp" x ; the letters C H I R P\nx = *OCTET\n',
        'A = %s"CHIRP" x ; the letters C H I R P\nx = *OCTET\n',
    ),
    Code(
        "W419",
        "A fixed value that is not required",
        "A comment states the value that a field always has, but any value is accepted.",
        "A = %x01 x\nx = OCTET ; an integer, must be 1\n",
        "A = %x01 x\nx = OCTET ; an integer, must be 1\n",
        _DEMO,
        _DEMO + "[types.x]\nconstant = 1\n",
    ),
    Code(
        "W420",
        "Frames described only in words",
        "Comments or prose mention several frames, but every message is generated as one frame.",
        "A = %x01 x ; followed by a topic frame\nx = *OCTET\n",
        "A = h topic\nh = %x01 ; ZeroMQ frame\ntopic = FRAME ; followed by a topic frame\n",
        _DEMO + 'messages = ["A"]\n',
        _DEMO + 'messages = ["A"]\n',
    ),
    Code(
        "W421",
        "Prose about another kind of number",
        "Prose of the document calls its numbers little-endian, signed, floats or varints, but integers "
        "are generated as unsigned and big-endian.",
        "A = %x01 x\nx = 4OCTET ; an integer\n",
        "A = %x01 x\nx = 4OCTET ; an integer\n",
        _DEMO + '[[prose]]\ntext = "little-endian"\nabout = "numbers"\n',
        _DEMO + '[types.x]\norder = "big"\n[[prose]]\ntext = "little-endian"\nabout = "numbers"\n',
    ),
    Code(
        "W422",
        "A size that is not compared",
        "A comment declares an integer to be the size of a value, but the integer is not directly before "
        "that value, so the two are not compared.",
        "A = %x01 n kind x\nn = OCTET ; an integer\nkind = OCTET ; an integer\nx = *OCTET ; n bytes\n",
        "A = %x01 kind n x\nn = OCTET ; an integer\nkind = OCTET ; an integer\nx = *OCTET ; n bytes\n",
        _DEMO,
        _DEMO + '[types.n]\nscope = "next"\n',
    ),
    Code(
        "W413",
        "A text that is not checked",
        "The pattern of the text would have more than 20,000 characters, so strict decoding accepts any "
        "text.",
        "A = %x01 x\nx = 1*( " + " / ".join(f'"word{n}"' for n in range(1_000)) + " )\n",
        "A = %x01 x\nx = 1*( ALPHA / DIGIT )\n",
    ),
    Code(
        "W423",
        "A message that is omitted",
        "The message, or a rule that it uses, has a fault. With `--partial`, the sound messages are "
        "generated without it.",
    ),
    Code(
        "W425",
        "A payload that no message has",
        "The [[payload]] table names a message or a field that the protocol lacks, or no field of its "
        "messages has JSON. The payload is omitted.",
    ),
)
