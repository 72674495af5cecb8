"""Readers for the value at the front of a run of octets; each advances the run.

A *split* function splits off the octets of a value as a run; False if there are too few. An *in*
function returns the value in a run as an object, or None if it refuses the value.

A loop that is decoded on first access is *held*: `bytes` of the number of items (8 octets in the
machine's order) and the octets of the items.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memchr, memcpy

from specwire.generated.native_octets cimport (
    Run,
    bytes_of,
    find,
    frame_at,
    frame_is,
    is_utf8,
    left,
    octets_of,
    run_of,
    same,
    text_of,
)


cdef inline bint constant_at(object frames, Py_ssize_t index, const char* octets, Py_ssize_t count):
    """Return whether there is a frame with exactly these octets."""
    cdef bytes frame = frame_at(frames, index)
    return frame is not None and frame_is(frame, octets, count)


cdef inline str text_at(object frames, Py_ssize_t index, bint terminated):
    """Return the text that fills a frame, without the NUL that can end a `terminated` one.

    None if there is no such frame or it is not a text.
    """
    cdef bytes frame = frame_at(frames, index)
    if frame is None:
        return None
    cdef Run run = run_of(frame)
    return None if terminated and not strip_nul(&run) else text_in(&run)


cdef inline bint take(Run* run, const char* octets, Py_ssize_t count) noexcept nogil:
    """Advance past these octets; return False if the run does not begin with them."""
    if left(run) < count or not same(run.at, octets, count):
        return False
    run.at += count
    return True


cdef inline bint skip(Run* run, Py_ssize_t octets) noexcept nogil:
    if left(run) < octets:
        return False
    run.at += octets
    return True


cdef inline Py_ssize_t gap(Py_ssize_t position, Py_ssize_t multiple) noexcept nogil:
    """Return the number of octets from a position to the next multiple."""
    return (multiple - position % multiple) % multiple


cdef inline bint split(Run* run, uint64_t octets, Run* value) noexcept nogil:
    if octets > <uint64_t>left(run):
        return False
    value.at = run.at
    value.end = run.at = run.at + octets
    return True


cdef inline bint split_until(Run* run, const char* octets, Py_ssize_t count, Run* value) noexcept nogil:
    """Split off a value before its terminator, which remains in the run."""
    cdef const uint8_t* end = find(run.at, run.end, octets, count)
    if end == NULL:
        return False
    value.at = run.at
    value.end = run.at = end
    return True


cdef inline bint split_rest(Run* run, Py_ssize_t behind, Run* value) noexcept nogil:
    """Split off all but the last `behind` octets."""
    if left(run) < behind:
        return False
    value.at = run.at
    value.end = run.at = run.end - behind
    return True


cdef inline void strip(Run* value, uint8_t fill) noexcept nogil:
    """Remove the padding at the end of a text."""
    while value.end > value.at and value.end[-1] == fill:
        value.end -= 1


cdef inline bint strip_nul(Run* value) noexcept nogil:
    """Remove the NUL at the end of a text; return False if it contains another."""
    if value.end > value.at and value.end[-1] == 0:
        value.end -= 1
    return value.end == value.at or memchr(value.at, 0, value.end - value.at) == NULL


cdef inline bint text_is_good(const Run* value) noexcept nogil:
    return is_utf8(value.at, value.end)


cdef inline str text_in(const Run* value):
    return text_of(value.at, left(value))


cdef inline bytes bytes_in(const Run* value):
    return bytes_of(value.at, left(value))


cdef inline const uint8_t* equals_in(const Run* value, bint first) noexcept nogil:
    """Return the address of the first or last ``=`` in a text, NULL if there is none."""
    cdef const uint8_t* at = value.end
    if first:
        return <const uint8_t*>memchr(value.at, c"=", left(value)) if value.at < value.end else NULL
    while at > value.at:
        at -= 1
        if at[0] == c"=":
            return at
    return NULL


cdef inline tuple divided_in(const Run* value, bint first):
    """Return name and value of a text split at its first or last ``=``; None if it has none."""
    cdef const uint8_t* equals = equals_in(value, first)
    if equals == NULL:
        return None
    cdef str name = text_of(value.at, equals - value.at)
    cdef str content = text_of(equals + 1, value.end - equals - 1)
    return None if name is None or content is None else (name, content)


cdef inline bint divided_is_good(const Run* value, bint first) noexcept nogil:
    return equals_in(value, first) != NULL and is_utf8(value.at, value.end)


cdef inline bytes held(const uint8_t* at, const uint8_t* end, uint64_t count):
    """Return `count` items in these octets as a held loop."""
    cdef bytes made = PyBytes_FromStringAndSize(NULL, sizeof(count) + (end - at))
    cdef uint8_t* start = <uint8_t*>octets_of(made)
    memcpy(start, &count, sizeof(count))
    memcpy(start + sizeof(count), at, end - at)
    return made


cdef inline Run held_run(bytes items, uint64_t* count) noexcept:
    """Return the octets of a held loop, and set `count`."""
    cdef Run run = run_of(items)
    memcpy(count, run.at, sizeof(count[0]))
    run.at += sizeof(count[0])
    return run
