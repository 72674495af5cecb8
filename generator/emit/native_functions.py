"""Emitter of the functions of composite types in the compiled codec: take, skip, put.

- ``_take_<name>(run)`` returns a value, or None if it refuses the octets.
- ``_skip_<name>(run)`` only returns whether the octets are valid, for values decoded on first
  access.
- ``_put_<name>(out, given)`` returns whether it could write the value.
"""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit.native_decoding import Reader
from specwire.generator.emit.native_encoding import Putter
from specwire.generator.emit.native_types import Composite, literal, same_again


def take_function(type: Composite, protocol: ir.Protocol, names: dict[Composite, str]) -> str:
    """Return the body of ``_take_<name>(Run* run)``, which returns the value or None."""
    reader = Reader(protocol, names, run="run")
    match type:
        case ir.RecordType(class_name=name, fields=fields):
            reader.lines.add(f"cdef {name} made = {name}.__new__({name})")
            reader.record(fields)
            reader.lines.add("return made")
        case ir.UnionType(options=options, tags=tags):
            for option, tag in zip(options, tags, strict=True):
                octets = bytes.fromhex(tag)
                test = f"left(run) >= {len(octets)} and same(run.at, {literal(octets)}, {len(octets)})"
                with reader.lines.block(f"if {test}:"):
                    reader.lines.add(f"return _take_{names[option]}(run)")
            reader.lines.add("return None")
        case _:
            _take_entries(reader, type)
    return reader.text()


def _take_entries(reader: Reader, type: ir.ListType | ir.PairsType) -> None:
    items = reader.local("items")
    head = _entries(reader, type)
    reader.lines.add(f"{items} = []")
    with reader.lines.block(head):
        item = reader.local("item")
        if isinstance(type, ir.ListType):
            reader.take(type.element, item)
        elif type.value is None:
            reader.split(type.name.length)
            reader.lines.add(f"{item} = divided_in(&piece, {type.split == 'first'})")
            reader.refuse_if(f"{item} is None")
        else:
            name = reader.local("name")
            reader.take(type.name, name)
            reader.take(type.value, item)
            reader.lines.add(f"{item} = ({name}, {item})")
        reader.lines.add(f"{items}.append({item})")
    if type.minimum and not type.count_octets:
        reader.refuse_if(f"len({items}) < {type.minimum}")
    reader.lines.add(f"return tuple({items})")


def _entries(reader: Reader, type: ir.ListType | ir.PairsType) -> str:
    """Take the count; return the head of the loop over the entries."""
    if not type.count_octets:
        return f"while left({reader.run}):"
    entries = reader.local("entries")
    reader.refuse_if(f"left({reader.run}) < {type.count_octets}")
    reader.lines.add(f"{entries} = number({reader.front}, {type.count_octets})")
    reader.lines.add(f"{reader.front} += {type.count_octets}")
    if type.minimum:
        reader.refuse_if(f"{entries} < {type.minimum}")
    # Each entry has at least one octet, so a count that is too large ends with the octets.
    return f"for _ in range({entries}):"


def skip_function(type: Composite, protocol: ir.Protocol, names: dict[Composite, str]) -> str:
    """Return the body of ``_skip_<name>(Run* run)``, which returns whether the value is valid."""
    assert isinstance(type, ir.ListType | ir.PairsType)
    assert same_again(type)
    reader = Reader(protocol, names, refusal="False", run="run")
    head = _entries(reader, type)
    counted = bool(type.minimum and not type.count_octets)
    if counted:
        reader.local("entries")
        reader.lines.add("entries = 0")
    with reader.lines.block(head):
        if isinstance(type, ir.ListType):
            reader.skip(type.element)
        elif type.value is None:
            reader.split(type.name.length)
            reader.refuse_if(f"not divided_is_good(&piece, {type.split == 'first'})")
        else:
            reader.skip(type.name)
            reader.skip(type.value)
        if counted:
            reader.lines.add("entries += 1")
    if counted:
        reader.refuse_if(f"entries < {type.minimum}")
    reader.lines.add("return True")
    return reader.text()


def put_function(type: Composite, protocol: ir.Protocol, names: dict[Composite, str]) -> str:
    """Return the body of ``_put_<name>(Writer* out, object given)``, which returns whether it succeeded."""
    putter = Putter(protocol, names, owner="record", out="out", refusal="False")
    lines = putter.lines
    match type:
        case ir.RecordType(class_name=name, fields=fields):
            putter.refuse_if(f"type(given) is not {name}")
            lines.add(f"cdef {name} record = <{name}>given")
            putter.refuse_if("record.kept__ is not None")
            putter.fields(fields)
            lines.add("return True")
        case ir.UnionType(options=options):
            for option in options:
                with lines.block(f"if type(given) is {option.class_name}:"):
                    lines.add(f"return _put_{names[option]}(out, given)")
            lines.add("return False")
        case _:
            _put_entries(putter, type)
    return putter.text()


def _put_entries(putter: Putter, type: ir.ListType | ir.PairsType) -> None:
    lines = putter.lines
    items, item = putter.local("items"), putter.local("item")
    putter.refuse_if("type(given) is not tuple")
    lines.add(f"{items} = <tuple>given")
    if type.minimum:
        putter.refuse_if(f"len({items}) < {type.minimum}")
    if type.count_octets:
        putter.must(f"put_integer(out, len({items}), {type.count_octets})")
    with lines.block(f"for {item} in {items}:"):
        if isinstance(type, ir.ListType):
            putter.put(type.element, item)
        else:
            putter.refuse_if(f"type({item}) is not tuple or len(<tuple>{item}) != 2")
            name, value = f"(<tuple>{item})[0]", f"(<tuple>{item})[1]"
            if type.value is None:
                _put_divided(putter, type, name, value)
            else:
                putter.put(type.name, name)
                putter.put(type.value, value)
    lines.add("return True")


def _put_divided(putter: Putter, type: ir.PairsType, name: str, value: str) -> None:
    length, first = type.name.length, type.split == "first"
    width = length.octets if length.kind == "prefix" else 0
    if length.kind == "fixed":
        putter.lines.add(f"{putter.local('mark')} = written(out)")
    putter.must(f"put_divided(out, {name}, {value}, {first}, {width})")
    if length.kind == "fixed":
        putter.refuse_if(f"written(out) - mark != {length.octets}")
