"""E7xx and W7xx: findings of ``specwire import`` in a document."""

from __future__ import annotations

from specwire.generator.codes.row import Code

DOCUMENTS = (
    Code("E700", "An invalid protocol name", "The protocol name is not a valid package name."),
    Code("E701", "Not a text", "The document contains NUL octets."),
    Code("E702", "No grammar", "The document contains neither ABNF rules nor frame tables."),
    Code(
        "E703",
        "A document that is too large",
        "The document has more text or more rules than specwire reads.",
    ),
    Code(
        "E704",
        "A frame table that cannot be read",
        "A line of the table does not have the form of a frame definition.",
    ),
    Code(
        "E705",
        "A dialog that cannot be read",
        "A line of the dialog does not have the form of a dialog line.",
    ),
    Code("W701", "A block that is never closed", "The block is read up to the end of the document."),
    Code(
        "W702",
        "A different number of frames",
        "The sentence above a table and the table state different numbers of frames.",
    ),
    Code(
        "W703",
        "A table that repeats another command",
        "A frame table repeats the command label of another table.",
    ),
    Code("W704", "A frame without a description", "The frame is read as octets."),
    Code("W705", "A different number of octets", "The value of a frame and its stated length disagree."),
    Code("W706", "A frame out of order", "The frames of the rule are in the order of their lines."),
    Code(
        "W707",
        "Two rules with one name",
        "Two blocks define different rules with the same name. The later rule is renamed.",
    ),
    Code(
        "W708", "An outdated erratum", "The new edition does not contain the text that the erratum corrects."
    ),
    Code("W709", "An undefined command", "A dialog names a command that has no table."),
    Code(
        "W710",
        "A command without a name",
        "The document does not name the command, so it is named after its section.",
    ),
    Code(
        "W711",
        "Two commands with one name",
        "Two sections define a command with this name. Each command is named after its section.",
    ),
    Code(
        "W712",
        "A rule name with a space",
        "The name is written with a hyphen in its definition and wherever it is used.",
    ),
    Code(
        "W713",
        "A sender that does not match",
        "A message is defined with one sender and used with another. The sender is removed from its name.",
    ),
    Code(
        "W714",
        "A rule without a name",
        "A line states who sends which messages but has no name. It is skipped.",
    ),
    Code(
        "W715",
        "A misspelled name",
        "An undefined name is read as the similar name that is defined. An erratum records the correction.",
    ),
    Code(
        "W716",
        "A character that is not in ABNF",
        "Typographic quotes and dashes and the comments of other languages are converted to ABNF.",
    ),
    Code(
        "W717",
        "Names from another specification",
        "The document uses names that it does not define. Another specification may define them.",
    ),
    Code(
        "W719",
        "Prose about something that the grammar does not show",
        "Prose or a diagram mentions more frames, another kind of number or other letters. The profile "
        "keeps the words under [[prose]], and `specwire check` compares them with the layouts.",
    ),
    Code(
        "W718",
        "A sender assumed from the name",
        "No dialog defines the sender of a request or a reply. Requests are assumed to be sent by the "
        "client, replies by the server.",
    ),
    Code(
        "W720",
        "A definition that is assumed for a name",
        "The document uses a name that it does not define. The other messages of the same form, or the "
        "family of the grammar, show its definition. The profile has the rule under [[rules]].",
    ),
    Code(
        "W721",
        "A document that is not UTF-8",
        "The document is read as UTF-16 or as Windows-1252, which includes Latin-1.",
    ),
    Code(
        "W722",
        "A payload of unknown messages",
        "The document describes a payload, but not the topic, the direction or the message that has it. "
        "Without a topic, the payload is skipped.",
    ),
    Code(
        "W723",
        "A key of unknown type",
        "The document states no type for a key of a payload, or one that JSON does not have. The schema "
        "allows any value.",
    ),
    Code(
        "W724",
        "A key without a name",
        "The description of a key has another entry, with a type but without a name. It is skipped.",
    ),
    Code(
        "W725",
        "A payload that the document no longer describes",
        "The profile has a payload from an earlier edition of the document. It is kept.",
    ),
)
