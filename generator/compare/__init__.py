"""Two editions of a protocol: what changed, and who can still read whom.

    old IR, new IR --match--> pairs of messages, parts, fields --judge--> Comparison

`compare` asks of every change three questions. Does a reader of the old edition read data of the new one?
Does a reader of the new edition read data of the old one? What does a table need that holds old rows? The
first two are one question with the editions exchanged, so a rule below is written once, for a *writer* and
a *reader*. It speaks of the default reading; what only ``strict`` looks at never breaks anything.

*yes*: whatever the writer's edition can write is read as it was meant. *depends*: it is where the condition
holds that the sentence names; the rest is refused or misread. *no*: there is no condition to keep to. The
whole is the worst of its changes, which is sound because a change that is judged *yes* leaves every octet
where it was.

    what is between writer and reader                                   reads
    ------------------------------------------------------------------  --------------------------------
    name of a message, part, role; comment, default, letter             yes
    name of a field                                                     yes if constant or with the same
                                                                        comment; depends: on what it means
    message that the reader lacks, and is new                           depends: others are read
    message that the reader lacks, and was there before                 no: old peers go on sending it
    message that the writer lacks                                       yes; depends: where a name that was
                                                                        open could have spelled it
    tags                                                                all known yes, some depends, none no

    part, always there, that one of them lacks; part in another order   no
    part that flags announce, or announce by other bits                 by going through all values of the
                                                                        flags that the writer can write:
                                                                        all alike yes, some depends, none no
    part that may be left out, which the reader lacks                   depends: where it is left out; no, where
                                                                        it would be taken for another such part
    part that may be left out, which the writer lacks                   yes, if no other could be taken for it
    frame read as the rest of the frames; the rest read as a frame      yes; depends: where there is one
    stack read as anything else, or the reverse                         no

    field that the reader lacks                                         no; last and possibly empty: depends
    field that the writer lacks                                         no; last, possibly empty, nothing else
                                                                        of the writer's left over: yes
    field at the end that may be left out, which the reader lacks       depends: where it is left out
    the same, which the writer lacks                                    yes
    fields in another order, or in another part                         no
    integer, prefix, count or fixed length of another size              no
    fixed length read as the rest of the frame, and the reverse         yes; depends: where the size is right
    list of values (constant, keyword, enumeration) on either side      all read yes, some depends, none no
    octets read as text, unended text as text that NUL ends             depends: where UTF-8, where no NUL
    text read as octets, an integer as octets of its size               yes
    minimum or maximum of octets or entries, narrower for the reader    depends
    fields of a record, at its path (``items[].name``)                  as fields of a frame
    option of a union that the reader lacks                             depends; with another tag: no
    form of a size that the reader lacks                                depends; no form in common: no
    padding with other octets, or read as something                     yes; of another length: no
    text that one of them fills up, or with another octet               depends: where it fills its place
    characters of a text                                                yes: strict reading alone looks
    unit of a number                                                    no, if both name one

    bit of the flags: same name, another value                          no
    bit: same value, another name or announced part                     no; with the same comment and part: yes
    bit that the reader, or a sentinel that either does not know        depends: on what it asks
    member of an enumeration that the reader lacks                      depends: where the value is another
    member: same name, another value; constant of another value         no
    member: same value, another name                                    depends: where it means the same

    step of a dialog that the reader's edition does not allow           depends: where it is not taken
    role, socket, timer, key of replies                                 depends: on the peers, not on octets
    answer to faults, place of the tag                                  yes
    stream: other sizes no; magics and heads as tags; framing as a message

For tables the columns of both editions decide: one that keeps name and type is safe to append to, one that
only the new edition has is a new column (a renamed field too: columns go by their names), another type is a
rewrite, and so is the same number with another meaning.
"""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.compare.agreements import agreement_changes
from specwire.generator.compare.comparison import Comparison, edition_of
from specwire.generator.compare.context import Context
from specwire.generator.compare.conversations import dialog_changes
from specwire.generator.compare.messages import message_changes
from specwire.generator.compare.numbers import number_changes


def compare(old: ir.Protocol, new: ir.Protocol) -> Comparison:
    """Return what differs between two editions, judged; comments and places in files do not count."""
    context = Context(old, new)
    changes = (
        *message_changes(context),
        *number_changes(context),
        *dialog_changes(context),
        *agreement_changes(context),
    )
    return Comparison(edition_of(old), edition_of(new), changes)
