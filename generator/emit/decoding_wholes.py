"""Values that fill their frame, in the fast decoders: one expression each, and its checks.

The frame may be a view if the caller wants no copies; octets keep the type of the frame.
"""

from __future__ import annotations

from specwire.generator import ir


def is_whole(type: ir.Type) -> bool:
    """Return whether a value fills its frame."""
    if isinstance(type, ir.TextType | ir.OctetsType):
        return type.length.kind == "rest"
    return isinstance(type, ir.KeywordType | ir.JsonType | ir.ConstantType)


def whole_value(type: ir.Type, frame: str) -> str:
    """Return the expression for a value that fills its frame."""
    if isinstance(type, ir.OctetsType):
        return frame
    text = text_of(frame)
    return f"without_nul({text})" if may_end_with_nul(type) else text


def text_of(frame: str) -> str:
    """Return the expression for the text that fills a frame."""
    return f'str({frame}, "utf-8")'


def may_end_with_nul(type: ir.Type) -> bool:
    """Return whether the type is a NUL-terminated text; the NUL is not part of the value."""
    return isinstance(type, ir.TextType) and type.terminated


def limits(type: ir.Type, frame: str) -> list[str]:
    """Return the conditions that refuse octets or a word in `frame`."""
    match type:
        case ir.KeywordType(options=options):
            return [f"{frame} not in {tuple(option.encode() for option in options)!r}"]
        case ir.OctetsType(minimum=minimum, maximum=maximum):
            short = f"len({frame}) < {minimum}" if minimum > 1 else f"not {frame}"
            return [short] * (minimum > 0) + [f"len({frame}) > {maximum}"] * (maximum is not None)
    return []


def elements(type: ir.Type, frames: str) -> str:
    """Return the expression for the tuple of the frames of a stack or rest."""
    if isinstance(type, ir.OctetsType):
        return f"tuple({frames})"
    return f"tuple([{whole_value(type, 'frame')} for frame in {frames}])"
