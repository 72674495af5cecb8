"""E7xx and W7xx: what ``specwire import`` finds in a document."""

from __future__ import annotations

from specwire.generator.codes.row import Code

DOCUMENTS = (
    Code("E700", "A protocol's name", "The name given to the protocol cannot name a package."),
    Code("E701", "Not a text", "The document holds NUL octets, or is not UTF-8."),
    Code("E702", "No grammar", "The document holds neither rules nor frame tables."),
    Code("E703", "A document too large", "The document has more text or more rules than any specification."),
    Code("E704", "A frame table that cannot be read", "A line of the table is none of the forms that frame tables have."),
    Code("E705", "A dialog that cannot be read", "A line of the dialog is none of the forms that dialogs have."),
    Code("W701", "A block that is never closed", "The block is read up to the end of the document."),
    Code("W702", "Another number of frames", "The sentence above a table and the table disagree."),
    Code("W703", "The label of another command", "A table repeats what another command's table says."),
    Code("W704", "A frame that says nothing", "It is read as octets."),
    Code("W705", "Another number of octets", "What is written and how long it is said to be disagree."),
    Code("W706", "A frame out of order", "The rule has the frames in the order of their lines."),
    Code("W707", "One name, two rules", "Each block has names of its own; the later rule gets another name."),
    Code("W708", "An erratum that mends nothing any more", "The new edition does not have the text that the erratum mends."),
    Code("W709", "A command that nothing defines", "A dialog names a command without a table."),
    Code("W710", "A command without a name", "The document does not name it; it is called after its section."),
    Code("W711", "One name, two commands", "Two sections have a command of the name each; each is called after its section."),
    Code("W712", "A rule name with a blank", "It is written with a hyphen, and so where it is used."),
    Code("W713", "A sender that is none", "A message is defined with a sender, and used with another; the name loses it."),
    Code("W714", "A rule without a name", "A line says who sends what and names nothing; it is left out."),
    Code("W715", "A slip", "A name that nothing defines is taken for the one that it resembles; an erratum says so."),
    Code("W716", "A sign that ABNF does not have", "Typographic quotes and dashes, or the comments of another language."),
    Code("W717", "Names from elsewhere", "The document uses names that it does not define; another specification may."),
    Code("W719", "Prose about something that the grammar does not show", "Prose or a diagram mentions more frames, another kind of number or other letters. The profile keeps the words under [[prose]], and `specwire check` compares them with the layouts."),
    Code("W718", "A sender by its name", "No dialog says who sends a request or a reply: the client the one, the server the other."),
)  # fmt: skip
