"""Bodies of frames and records in the fast decoders: runs of fixed size, then single values.

A frame or record that contains octets may be a view (see ``copy`` of `decode`), whose slices are
views, too. All others are bytes. `specwire.generator.emit.decoding_runs` emits the runs.
"""

from __future__ import annotations

from specwire.generator.emit.bodies import (
    choice_function,
    condition_source,
    item_annotation,
    record_function,
    value_annotation,
)
from specwire.generator.emit.decoding_runs import RunDecoder
from specwire.generator.emit.python import octets_literal
from specwire.generator.support.layout import Integer
from specwire.generator.support.plan import (
    ITEM,
    NAME,
    VALUE,
    Body,
    Choose,
    Extent,
    Loop,
    Mark,
    Nest,
    Optional,
    Pad,
    Region,
    Sized,
    TakeOctets,
    TakeText,
    Verify,
    When,
)


class BodyDecoder(RunDecoder):
    """Decoder of one body."""

    def run(self, body: Body) -> None:
        """Decode a body and check that the frame ends with it."""
        self.alone = body[0] if len(body) == 1 else None
        self.visit(body)
        if not self.ended:
            self.decoder.refuse_if(f"{self.place()} != {self.end}")

    def record(self, body: Body, stop: str) -> str:
        """Decode the body of a record, before the position `stop`; return the expression for its end."""
        self.record_level, self.whole, self.end = True, False, stop
        self._begin_body(body)
        self.visit(body)
        last = body[-1] if body else None
        return stop if isinstance(last, TakeText | TakeOctets) and self._ends(last.extent) else self.place()

    def _begin_body(self, body: Body) -> None:
        """Keep the position of the start of a body for its padding."""
        if any(isinstance(op, Pad) and op.multiple for op in body):
            self.start = self.names.fresh("start", "int")
            self.lines.add(f"{self.start} = {self.place()}")

    def visit(self, body: Body) -> None:
        """Decode operations in order; each can look at the next."""
        self.counts |= {op.count for op in body if isinstance(op, Loop)}
        for op, following in zip(body, (*body[1:], None), strict=False):
            self.following = following
            self.operation(op)

    # Values of variable size

    def text(self, op: TakeText) -> None:
        self._text(op, self.span(op.extent), view=self.view)
        self.ended = self._ends(op.extent)

    def octets(self, op: TakeOctets) -> None:
        self._slice(op, self.span(op.extent))
        target = self.target(op.slot)
        if op.minimum:
            self.decoder.refuse_if(f"len({target}) < {op.minimum}")
        if op.maximum is not None:
            self.decoder.refuse_if(f"len({target}) > {op.maximum}")
        self.ended = self._ends(op.extent)

    def _ends(self, extent: Extent) -> bool:
        return extent.kind == "rest" and not extent.octets

    def span(self, extent: Extent) -> str:
        """Advance past a value; return the slice of the frame with its content."""
        match extent.kind:
            case "rest":
                return self._rest(extent.octets)
            case "until":
                return self._until(extent.until)
            case "run":
                return self._run(extent)
            case "fixed":
                raise TypeError("a value of fixed size belongs to a run")
        number = self.less(extent.slot, extent.plus)
        begin = self.begin()
        self.jump(f"{begin} + {number}")
        return f"{self.frame}[{begin} : {self.at}]"

    def less(self, slot: str, plus: int) -> str:
        """Return the expression for the number in a slot, less `plus`; refuse a negative one."""
        number = self.values[slot]
        if not plus:
            return number
        self.decoder.refuse_if(f"{number} < {plus}")
        return f"{number} - {plus}"

    def _rest(self, trailer: int) -> str:
        """Return the rest of the frame, but its last octets."""
        if trailer:
            begin, end = self.begin(), self.names.local("end")
            self.lines.add(f"{end} = {self.end} - {trailer}")
            self.decoder.refuse_if(f"{end} < {begin}")
            self.base, self.offset, self.inside = end, 0, True
            return f"{self.frame}[{begin} : {end}]"
        if not self.whole:
            self.decoder.refuse_if(f"{self.place()} > {self.end}")
        elif not self.base:
            if self.offset > self.known:
                self.decoder.refuse_if(f"len({self.frame}) < {self.offset}")
        elif not self.inside:
            self.decoder.refuse_if(f"{self.place()} > {self.end}")
        return f"{self.frame}[{self.place()} : {'' if self.whole else self.end}]"

    def _until(self, end: bytes) -> str:
        """Advance to a text's terminator; raise at once if there is none."""
        start = self.begin()
        found = "index_of({0}, " if self.view else "{0}.index("
        self.jump(f"{found.format(self.frame)}{octets_literal(end)}, {start})")
        self.inside = True
        return f"{self.frame}[{start} : {self.at}]"

    def _run(self, extent: Extent) -> str:
        """Advance past a run; raise at once if it is too short."""
        begin, run = self.begin(), self.decoder.runs[extent.among]
        stop = "" if self.whole else f", {self.end}"
        self.jump(f"run_end({run}, {self.frame}, {begin}, {extent.octets}{stop})")
        self.inside = True
        return f"{self.frame}[{begin} : {self.at}]"

    def pad(self, op: Pad) -> None:
        """Skip octets up to a multiple."""
        place = f"({self.place()})" if self.base and self.offset else self.place()
        missing = f"({self.start} - {place})" if self.start else f"-{place}"
        self.jump(f"{self.place()} + {missing} % {op.multiple}")

    # Values with values inside

    def loop(self, op: Loop) -> None:
        lines, item = self.lines, item_annotation(op)
        head = f"while {self.at} < {self.end}"
        if op.count:
            number = self.less(op.count, op.plus)
            if op.minimum:
                self.decoder.refuse_if(f"{number} < {op.minimum}")
            head = f"for _ in range({number})"
        self.settle()
        if op.until and not op.count:
            head = f"{head} and {self._next(op.until, '!=')}"
        target = self.target(op.slot)
        lines.add(f"{self.names.declare(target, f'list[{item}]')} = []")
        self.inside = False
        with lines.block(f"{head}:"), self.names.scope():
            outer = self.targets
            self.targets = dict(outer)
            for slot in (ITEM, NAME, VALUE, f"{ITEM}#", f"{NAME}#", f"{VALUE}#"):
                self.targets.pop(slot, None)
            self._item(op, target)
            self.targets = outer
            self.settle()
        self.inside = False
        if op.minimum and not op.count:
            self.decoder.refuse_if(f"len({target}) < {op.minimum}")
        self.values[op.slot] = f"tuple({target})"

    def _item(self, op: Loop, target: str) -> None:
        """Decode one item and append it."""
        names = self.names
        match op.pairs:
            case "":
                self.targets[ITEM] = names.fresh("item", value_annotation(op.body, ITEM))
                self.visit(op.body)
                value = self.values[ITEM]
            case "both":
                self.targets[NAME] = names.fresh("name", value_annotation(op.body, NAME))
                self.targets[VALUE] = names.fresh("value", value_annotation(op.body, VALUE))
                self.visit(op.body)
                value = f"({self.values[NAME]}, {self.values[VALUE]})"
            case _:
                name, value = names.fresh("name", "str"), names.fresh("value", "str")
                self.targets[ITEM] = names.fresh("entry", "str")
                self.visit(op.body)
                equals = names.fresh("equals", "str")
                method = "partition" if op.pairs == "first" else "rpartition"
                self.lines.add(f'{name}, {equals}, {value} = {self.values[ITEM]}.{method}("=")')
                self.decoder.refuse_if(f"not {equals}")
                value = f"({name}, {value})"
        self.lines.add(f"{target}.append({value})")

    def nest(self, op: Nest) -> None:
        self._nested(op.slot, record_function(op.record))

    def choose(self, op: Choose) -> None:
        self._nested(op.slot, choice_function(op.options))

    def _nested(self, slot: str, function: str) -> None:
        end, target = self.names.local("end"), self.target(slot)
        depth = f", {self.decoder.depth}" if self.decoder.plan.max_depth else ""
        self.lines.add(f"{target}, {end} = _read_{function}({self.frame}, {self.place()}, {self.end}{depth})")
        self.jump(end)
        self.values[slot] = target

    def optional(self, op: Optional) -> None:
        self.settle()
        condition, slots = self._condition(op.when), (op.slot, *op.others)
        outer = self.targets
        targets = {slot: self.target(slot) for slot in slots}
        kinds = {slot: value_annotation((op,), slot) for slot in slots}
        if op.boolean:
            self.lines.add(f"{targets[op.slot]} = {condition}")
            condition = targets[op.slot]
        else:
            self.lines.add(*(f"{targets[slot]}: {kinds[slot]} | None = None" for slot in slots))
        with self.lines.block(f"if {condition}:"), self.names.scope():
            self.targets = outer | {slot: self.names.fresh("value", kinds[slot]) for slot in slots}
            self.visit(op.body)
            if not op.boolean:
                self.lines.add(*(f"{targets[slot]} = {self.values[slot]}" for slot in slots))
            if self.ended:
                self.lines.add(f"{self.at} = {self.end}")
                self.base, self.offset = self.at, 0
            self.settle()
            self.targets = outer
        self.inside, self.ended = False, False
        self.values |= targets

    def _condition(self, when: When) -> str:
        """Return the condition that optional operations are performed."""
        match when.kind:
            case "octets":
                return self._next(when.octets, "==", folded=when.folded)
            case "number":
                return condition_source(when, self.values[when.slot])
            case "left":
                return f"{self.at} < {self.end}" + (f" - {when.left}" if when.left else "")

    def _next(self, octets: bytes, operator: str, *, folded: bool = False) -> str:
        """Return the condition that the next octets of the body are, or are not, `octets`."""
        end = self.place(len(octets))
        end = end if self.whole else f"min({end}, {self.end})"
        found = f"{self.frame}[{self.place()} : {end}]"
        if folded:
            found = f"bytes({found}).lower()" if self.view else f"{found}.lower()"
        return f"{found} {operator} {octets_literal(octets)}"

    def sized(self, op: Sized) -> None:
        size = self.names.local("size")
        self._size(op, size)
        if not self.record_level:
            self.decoder.refuse_if(f"{self.place()} + {size} != {self.end}")
            self.inside = True
            self._begin_body(op.body)
            self.visit(op.body)
            return
        self._inner(op.body, f"{self.place()} + {size}")

    def region(self, op: Region) -> None:
        self._inner(op.body, f"{self.place()} + {self.less(op.count, op.plus)}")

    def _inner(self, body: Body, end: str) -> None:
        """Decode a body that ends at the position `end`."""
        stop = self.names.fresh("stop", "int")
        self.lines.add(f"{stop} = {end}")
        self.decoder.refuse_if(f"{stop} > {self.end}")
        inner = BodyDecoder(self.decoder, self.frame, view=self.view, base=self.base, at=self.at)
        inner.offset, inner.targets, inner.counts = self.offset, self.targets, self.counts
        inner.end, inner.whole, inner.inside, inner.known = stop, False, True, self.offset
        inner._begin_body(body)
        inner.run(body)
        self.base, self.offset, self.inside = stop, 0, True

    def _size(self, op: Sized, size: str) -> None:
        """Read a size in one of its forms into the variable `size`."""
        if len(op.forms) == 1:
            ((tag, octets),) = op.forms
            if tag:
                self.decoder.refuse_if(self._tagged(tag, "!="))
                self.offset += len(tag)
            self.lines.add(f"{size} = {self._number(Integer(octets))}")
            self.offset += octets
            return
        # A form without a tag must not begin like any other form.
        start = self.base, self.offset
        for number, (tag, octets) in enumerate(sorted(op.forms, key=lambda form: not form[0])):
            test = f"{'elif' if number else 'if'} {self._tagged(tag, '==')}:" if tag else "else:"
            with self.lines.block(test):
                self.offset += len(tag)
                self.lines.add(f"{size} = {self._number(Integer(octets))}")
                self.offset += octets
                self.settle()
            self.base, self.offset = start
        if all(tag for tag, _ in op.forms):
            with self.lines.block("else:"):
                self.lines.add("raise ValueError")
        self.base, self.offset, self.inside = self.at, 0, False

    def _tagged(self, tag: bytes, operator: str) -> str:
        """Return the condition that the octets at the position are, or are not, `tag`."""
        if len(tag) == 1:
            return f"{self.frame}[{self.place()}] {operator} 0x{tag.hex()}"
        return f"{self.frame}[{self.place()} : {self.place(len(tag))}] {operator} {octets_literal(tag)}"

    # Checksums

    def mark(self, op: Mark) -> None:
        name = self.names.fresh("mark", "int")
        self.lines.add(f"{name} = {self.place()}")
        self.values[op.name] = name

    def verify(self, op: Verify) -> None:
        slices = [f"{self.frame}[{self.values[a]} : {self.values[b]}]" for a, b in op.ranges]
        octets = f"bytes({slices[0]})" if len(slices) == 1 else f'b"".join([{", ".join(slices)}])'
        self.decoder.refuse_if(f"compute_checksum({op.algorithm!r}, {octets}) != {self.values[op.slot]}")
