# Written by specwire from generator/support/columns/copying.pyx. Do not edit; change that file and run `make generate`.
# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Compiled join for `specwire.generated.columns.joining`: octets of several sources, element by element."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

BUILD = "1"
"""Version that `joining` requires; increased when the functions here change."""

cdef enum:
    # Elements up to this size are copied as a fixed block, without a call of memcpy, if there is room.
    SHORT = 16


cdef struct Source:
    # Elements have 32-bit or 64-bit offsets, or all the same width.
    const int32_t* small
    const int64_t* large
    int64_t width
    const uint8_t* octets
    int64_t length


def join(list offsets, list octets, int32_t[::1] ends, uint8_t[::1] out):
    """Write the first element of each source to `out`, then the second, and so on; store the end of each row.

    Args:
        offsets: for each source, an array with the start of its elements and the end of the last one; or the
            width of all elements.
        octets: for each source, its octets.
        ends: receives the end of each row, one more item than rows; the first item becomes 0.
        out: receives the octets; as large as all elements together.

    Raises:
        ValueError: an element exceeds the octets of its source, or `out` is too small.
    """
    cdef Py_ssize_t sources = len(offsets), count = ends.shape[0] - 1
    cdef Source* found
    if count < 1 or sources < 1 or out.shape[0] < 1 or len(octets) != sources:
        raise ValueError("nothing to join")
    found = <Source*> malloc(sources * sizeof(Source))
    if found is NULL:
        raise MemoryError
    try:
        for number in range(sources):
            _describe(&found[number], offsets[number], octets[number], count)
        if not _copy(found, sources, ends, out):
            raise ValueError("an element outside of its source")
    finally:
        free(found)


cdef int _describe(Source* source, object offsets, const uint8_t[::1] octets, Py_ssize_t count) except -1:
    """Set the location of a source's elements; the caller keeps the arrays alive."""
    cdef const int32_t[::1] small
    cdef const int64_t[::1] large
    cdef Py_ssize_t places = count + 1
    source.small, source.large, source.width = NULL, NULL, 0
    if octets.shape[0] < 1:
        raise ValueError("a source without octets")
    source.octets, source.length = &octets[0], octets.shape[0]
    if isinstance(offsets, int):
        source.width = offsets
    elif offsets.itemsize == 4:
        small = offsets
        source.small, places = &small[0], small.shape[0]
    else:
        large = offsets
        source.large, places = &large[0], large.shape[0]
    if places != count + 1:
        raise ValueError("sources of different length")
    return 0


cdef bint _copy(Source* sources, Py_ssize_t number, int32_t[::1] ends, uint8_t[::1] out) noexcept nogil:
    cdef Py_ssize_t row, index
    cdef int64_t at = 0, begin, size, room = out.shape[0]
    cdef Source* source
    ends[0] = 0
    for row in range(ends.shape[0] - 1):
        for index in range(number):
            source = &sources[index]
            if source.small is not NULL:
                begin = source.small[row]
                size = source.small[row + 1] - begin
            elif source.large is not NULL:
                begin = source.large[row]
                size = source.large[row + 1] - begin
            else:
                begin = row * source.width
                size = source.width
            if begin < 0 or size < 0 or size > source.length - begin or size > room - at:
                return False
            if size <= SHORT and begin + SHORT <= source.length and at + SHORT <= room:
                memcpy(&out[at], source.octets + begin, SHORT)
            else:
                memcpy(&out[at], source.octets + begin, size)
            at += size
        ends[row + 1] = <int32_t> at
    return True
