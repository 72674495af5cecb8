"""Comparison of octets in either case, and with sets of octets, for the compiled codecs.

Octets that are compared in either case are given in lower case. A set of octets is given as *ranges*:
pairs of the first and the last octet of each.
"""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcmp, memcpy

from specwire.generated.native_octets cimport Run, find, left
from specwire.generated.native_writing cimport Writer, room


cdef inline uint8_t lowered(uint8_t octet) noexcept nogil:
    """Return the octet of an ASCII letter in lower case, and any other octet as it is."""
    return octet | 0x20 if c"A" <= octet <= c"Z" else octet


cdef inline bint same_folded(const uint8_t* at, const char* octets, size_t count) noexcept nogil:
    cdef size_t index
    for index in range(count):
        if lowered(at[index]) != (<const uint8_t*>octets)[index]:
            return False
    return True


cdef inline uint64_t number_folded(const uint8_t* at, int octets) noexcept nogil:
    """Return 1 to 8 octets in lower case as a big-endian integer."""
    cdef uint64_t value = 0
    cdef int index
    for index in range(octets):
        value = value << 8 | lowered(at[index])
    return value


cdef inline const uint8_t* run_end(
    const uint8_t* at, const uint8_t* end, const char* ranges, int count
) noexcept nogil:
    """Return the address of the first octet that is not in one of `count` ranges, or `end`."""
    cdef const uint8_t* pairs = <const uint8_t*>ranges
    cdef int index
    while at < end:
        for index in range(count):
            if pairs[2 * index] <= at[0] <= pairs[2 * index + 1]:
                break
        else:
            break
        at += 1
    return at


cdef inline bint split_run(
    Run* run, const char* ranges, int count, Py_ssize_t least, Run* value
) noexcept nogil:
    """Split off the octets in `count` ranges; return False if there are fewer than `least`."""
    value.at = run.at
    value.end = run.at = run_end(run.at, run.end, ranges, count)
    return left(value) >= least


cdef inline bint is_run(
    const Writer* out, Py_ssize_t mark, const char* ranges, int count, Py_ssize_t least
) noexcept nogil:
    """Return whether the octets since `mark` are in `count` ranges, and at least `least`."""
    cdef const uint8_t* start = out.begin + mark
    return out.at - start >= least and run_end(start, out.at, ranges, count) == out.at


cdef inline bint begins_since(
    const Writer* out, Py_ssize_t mark, const char* octets, Py_ssize_t count
) noexcept nogil:
    """Return whether the octets since `mark` begin with `octets`."""
    return out.at - out.begin - mark >= count and memcmp(out.begin + mark, octets, count) == 0


cdef inline bint is_before(Writer* out, Py_ssize_t mark, const char* until, Py_ssize_t count) noexcept:
    """Return whether the octets since `mark`, with `until` after them, contain it only there."""
    if not room(out, count):
        return False
    memcpy(out.at, until, count)
    return find(out.begin + mark, out.at + count, until, count) == out.at
