"""YAML to plain values, those that JSON has, with bounds on everything a document can make large.

A document is at most `MAX_OCTETS` long, nests at most `MAX_DEPTH` levels and has at most `MAX_VALUES` values *after* its
aliases are put in place: a few lines of aliases to aliases can stand for billions of values, so each is counted as often as it is
used. Each use of an alias is a value of its own; nothing that is changed in one place changes in another.

YAML says more than JSON. A key that is a number or a truth value becomes the string that JSON would write, a date its ISO form;
what has no such form (binary, sets, infinite numbers, tags of programs) is an error at its place. So is a key that
stands twice in one mapping, which is a slip that would lose what the first one says.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import yaml

from specwire.runtime.norfab.inventory.faults import InventoryError, Place

MAX_OCTETS = 1024 * 1024
MAX_DEPTH = 64
MAX_VALUES = 200_000
_INTEGERS = range(-(2**63), 2**64)
"""What peers in other languages, and our own decoder, can read."""
_PLACED_DEPTH = 3
_MERGE = "tag:yaml.org,2002:merge"
_MAPPING = "tag:yaml.org,2002:map"
_SEQUENCE = "tag:yaml.org,2002:seq"

_Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The compiled one where there is one: ten times as fast, and the same rules."""


class Document(NamedTuple):
    """What a document says. `places` has the upper levels' values by the keys and indices that lead to them."""

    value: Any
    places: Mapping[tuple[str | int, ...], Place]


def read_document(text: str, file: str, *, rendered: bool = False) -> Document:
    """Return the one document in `text`, whose value is None where there is none; raises InventoryError."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_OCTETS:
        raise InventoryError(Place(file), f"is larger than {MAX_OCTETS} octets")
    try:
        _check_shape(text, file, rendered)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            reader = _Reader(loader, file, rendered)
            return Document(None if node is None else reader.read(node, ()), reader.places)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        words = ", ".join(part for part in (error.context, error.problem) if part)
        raise InventoryError(_place(mark, file, rendered), words) from error
    except yaml.reader.ReaderError as error:
        before = text[: error.position] if isinstance(error.position, int) else ""
        place = Place(file, before.count("\n") + 1, len(before) - before.rfind("\n"), rendered)
        raise InventoryError(place, f"has a character that YAML does not allow: {error.reason}") from error
    except UnicodeEncodeError as error:
        raise InventoryError(Place(file, rendered=rendered), "has text that is not UTF-8") from error


def _check_shape(text: str, file: str, rendered: bool) -> None:
    """Look at the events alone, which takes no memory, before any of it is built."""
    depth = documents = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise InventoryError(
                    _place(event.start_mark, file, rendered), "a second document begins here"
                )
        elif isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                place = _place(event.start_mark, file, rendered)
                raise InventoryError(place, f"is more than {MAX_DEPTH} levels deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _place(mark: Any, file: str, rendered: bool) -> Place:
    if mark is None:
        return Place(file, rendered=rendered)
    return Place(file, mark.line + 1, mark.column + 1, rendered)


class _Reader:
    """Reads the nodes of one document."""

    def __init__(self, loader: Any, file: str, rendered: bool) -> None:
        self.places: dict[tuple[str | int, ...], Place] = {}
        self._loader, self._file, self._rendered = loader, file, rendered
        self._values = 0

    def read(self, node: yaml.Node, path: tuple[str | int, ...]) -> Any:
        """Return the value of a node."""
        self._values += 1
        if self._values > MAX_VALUES:
            raise self._fault(node, f"there are more than {MAX_VALUES} values, aliases put in place")
        if len(path) > MAX_DEPTH:
            raise self._fault(node, f"an alias leads more than {MAX_DEPTH} levels deep, or to itself")
        if len(path) <= _PLACED_DEPTH:
            self.places[path] = _place(node.start_mark, self._file, self._rendered)
        if isinstance(node, yaml.MappingNode) and node.tag == _MAPPING:
            return dict(self._pairs(node, path))
        if isinstance(node, yaml.SequenceNode) and node.tag == _SEQUENCE:
            return [self.read(item, (*path, index)) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        raise self._fault(node, f"the tag {node.tag} is not supported here")

    def _pairs(self, node: yaml.MappingNode, path: tuple[str | int, ...]) -> Iterator[tuple[str, Any]]:
        """Yield what is merged in (``<<``), then what stands in the mapping itself, which goes before it."""
        own: dict[str, yaml.Node] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                yield from self._merged(value_node, path)
                continue
            key = self._key(key_node)
            if key in own:
                raise self._fault(key_node, f"the key {key!r} stands in this mapping already")
            own[key] = value_node
        for key, value_node in own.items():
            yield key, self.read(value_node, (*path, key))

    def _merged(self, node: yaml.Node, path: tuple[str | int, ...]) -> Iterator[tuple[str, Any]]:
        """Yield the pairs of mappings that are merged in; of several the first goes before the others."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for source in reversed(sources):
            value = self.read(source, (*path, "<<"))
            if not isinstance(value, dict):
                raise self._fault(source, "'<<' takes a mapping or a list of them")
            yield from value.items()

    def _key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self._fault(node, "a key is text or a number")
        key = self._scalar(node)
        if isinstance(key, str):
            return key
        words = {None: "null", True: "true", False: "false"}
        return words[key] if key is None or isinstance(key, bool) else str(key)

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        try:
            value = self._loader.construct_object(node)
        except (ArithmeticError, AttributeError, LookupError, ValueError) as error:
            # The library leaves it to the values' own constructors to fail, each in its way.
            kind = node.tag.rpartition(":")[2]
            raise self._fault(node, f"{node.value[:40]!r} cannot be read as {kind}: {error}") from error
        if isinstance(value, datetime.date | datetime.datetime):
            return value.isoformat()
        if isinstance(value, int) and value not in _INTEGERS:
            raise self._fault(node, "an integer has up to 64 bits; put longer numbers into quotes")
        if isinstance(value, float) and not math.isfinite(value):
            raise self._fault(node, f"{node.value} is not a number that JSON knows")
        if value is None or isinstance(value, str | int | float):
            return value
        raise self._fault(node, f"the tag {node.tag} is not supported here")

    def _fault(self, node: yaml.Node, reason: str) -> InventoryError:
        return InventoryError(_place(node.start_mark, self._file, self._rendered), reason)
