"""Values that are all of their frame, for the fast decoders: one expression each, and what it refuses."""

from __future__ import annotations

from specwire.generator import ir


def is_whole(type: ir.Type) -> bool:
    """Whether a value is all of its frame."""
    if isinstance(type, ir.TextType | ir.OctetsType):
        return type.length.kind == "rest"
    return isinstance(type, ir.KeywordType | ir.JsonType | ir.ConstantType)


def whole_value(type: ir.Type, frame: str) -> str:
    """Return the expression for a value that fills its frame; octets are bytes also where the frame is a view."""
    match type:
        case ir.OctetsType() if frame.isidentifier():
            # Asking is a quarter of the time that a call takes, and nearly all frames are bytes.
            return f"{frame} if type({frame}) is bytes else bytes({frame})"
        case ir.OctetsType():
            return f"bytes({frame})"
        case ir.TextType(terminated=True):
            return f'without_nul(str({frame}, "utf-8"))'
    return f'str({frame}, "utf-8")'


def limits(type: ir.Type, frame: str) -> list[str]:
    """Return the conditions under which octets or a word that fill `frame` are refused."""
    match type:
        case ir.KeywordType(options=options):
            return [f"{frame} not in {tuple(option.encode() for option in options)!r}"]
        case ir.OctetsType(minimum=minimum, maximum=maximum):
            short = f"len({frame}) < {minimum}" if minimum > 1 else f"not {frame}"
            return [short] * (minimum > 0) + [f"len({frame}) > {maximum}"] * (maximum is not None)
    return []


def elements(found: ir.Field, frames: str) -> str:
    """Return the tuple of a stack's or a rest's frames."""
    if isinstance(found.type, ir.OctetsType):
        return f"tuple(map(bytes, {frames}))"
    return f"tuple([{whole_value(found.type, 'frame')} for frame in {frames}])"
