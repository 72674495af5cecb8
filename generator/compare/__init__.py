"""Comparison of two editions of a protocol: what changed, and which peers remain compatible.

    old IR, new IR --match--> pairs of messages, parts, fields --judge--> Comparison

`compare` answers three questions about every change. Does a reader of the old edition read data of
the new one? Does a reader of the new edition read data of the old one? What must change in a table
with old rows? The first two are the same question with the editions exchanged, so each rule below
is written once, for a *writer* and a *reader*. The rules are about default decoding; checks of
``strict`` decoding never make a change breaking.

*yes*: everything that the writer's edition can write is read correctly. *depends*: only data that
meets the condition in the sentence is read correctly; other data is rejected or misread. *no*:
there is no such condition. The overall verdict is the worst of all changes. That is sound, because
a change that is judged *yes* moves no octet.

    what is between writer and reader                                   reads
    ------------------------------------------------------------------  --------------------------------
    name of a message, part, role; comment, default, letter             yes
    name of a field                                                     yes if constant or with the same
                                                                        comment; depends: on its meaning
    message that the reader lacks, and is new                           depends: others are read
    message that the reader lacks, but existed before                   no: old peers still send it
    message that the writer lacks                                       yes; depends: if an open name could
                                                                        have had its octets
    tags                                                                all known yes, some depends, none no

    part, always present, that one lacks; part in another order         no
    part that flags announce, or announce by other bits                 by checking all values of the flags
                                                                        that the writer can write:
                                                                        all equal yes, some depends, none no
    optional part that the reader lacks                                 depends: if it is absent; no, if it
                                                                        would be read as another such part
    optional part that the writer lacks                                 yes, if no other could be read as it
    frame read as the rest of the frames; the rest read as a frame      yes; depends: if there is one
    stack read as anything else, or with another delimiter              no

    field that the reader lacks                                         no; last and possibly empty: depends
    field that the writer lacks                                         no; last, possibly empty, no surplus
                                                                        octets of the writer: yes
    optional field at the end that the reader lacks                     depends: if it is absent
    optional field at the end that the writer lacks                     yes
    fields in another order, or in another part                         no
    integer, prefix, count or fixed length of another size              no
    fixed length read as the rest of the frame, and the reverse         yes; depends: if the size is right
    list of values (constant, keyword, enumeration) on either side      all read yes, some depends, none no
    another byte order, sign or coding of a number                      no
    more octets of a varint, more digits, or digits with a sign         depends: if the value has few, or none
    boolean read as an integer of its size; the reverse                 yes; depends: if it is 0 or 1
    counter or checksum of other fields or another algorithm            no; of as many other names: depends
    counter or checksum read as a number; the reverse                   yes; depends: if the value is right
    open enumeration read as a closed one; the reverse                  depends; yes
    bits read at another place, or as another kind of number            no
    bits of the same place with other values allowed                    as lists of values
    bits that one edition lacks, and spare in the other                 ignored yes; written as 0: yes, if
                                                                        the reader allows 0, else no
    field under a condition, or another one, inside a frame             depends: on the same presence
    words whose letters only the writer reads in either case            depends; the reverse yes
    octets read as text, open text as text that NUL ends                depends: if UTF-8, if no NUL
    text read as octets, an integer as octets of its size               yes
    minimum or maximum of octets or entries, narrower for the reader    depends
    fields of a record, at its path (``items[].name``)                  as fields of a frame
    option of a union that the reader lacks                             depends; with another tag: no
    form of a size that the reader lacks                                depends; no form in common: no
    padding with other octets, or read as something                     yes; of another length: no
    text that only one pads, or pads with another octet                 depends: if it fills its place
    run of other characters, or read up to other octets                 depends: if it has the same end
    entries up to other octets, or with others around or between them   no
    characters of a text                                                yes: only strict decoding checks
    unit of a number, unit or epoch of a timestamp                      no, if both declare one

    bit of the flags: same name, another value                          no
    bit: same value, another name or announced part                     no; same comment and part: yes
    bit that the reader, or a sentinel that either does not know        depends: on its meaning
    member of an enumeration that the reader lacks                      depends: if the value is another
    member: same name, another value; constant of another value         no
    member: same value, another name                                    depends: if the meaning is the same

    step of a dialog that the reader's edition does not allow           depends: if it is not taken
    role, socket, timer, key of replies                                 depends: on the peers, not on octets
    answer to faults, place of the tag                                  yes
    more values inside each other than the reader allows                depends; fewer yes
    stream: other sizes no; magics and heads as tags; framing as a message

    payload that one edition does not describe; of another type         yes; depends: if the value has both
    key of a payload that the writer may omit and the reader requires   depends: if it is there
    key that the reader lacks                                           yes; depends, if it refuses others
    key of another type                                                 depends: if the value has both

For tables, the columns of both editions decide. A column with the same name and type is safe to
append to. A column that only the new edition has is a new column, and so is a renamed field,
because columns are matched by name. Another type requires a rewrite, and so does the same number
with another meaning.
"""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.compare.agreements import agreement_changes
from specwire.generator.compare.comparison import Comparison, edition_of
from specwire.generator.compare.context import Context
from specwire.generator.compare.conversations import dialog_changes
from specwire.generator.compare.messages import message_changes
from specwire.generator.compare.numbers import number_changes
from specwire.generator.compare.payloads import payload_changes


def compare(old: ir.Protocol, new: ir.Protocol) -> Comparison:
    """Return the judged differences between two editions; comments and places in files are ignored."""
    context = Context(old, new)
    changes = (
        *message_changes(context),
        *number_changes(context),
        *dialog_changes(context),
        *agreement_changes(context),
        *payload_changes(context),
    )
    return Comparison(edition_of(old), edition_of(new), changes)
