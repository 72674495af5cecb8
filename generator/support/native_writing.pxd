"""Writers that append values to a frame under construction, for the compiled encoders.

A frame is built in a buffer on the stack and then copied to `bytes`: one allocation for each frame.
A frame that outgrows the buffer continues in a `bytes` object, which is truncated at the end. A
*put* function returns False if it cannot write the value. The caller then stops, and the pure codec
writes the value or raises the error.
"""

from cpython.bytes cimport PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_Clear
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_SIZE
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memchr, memcpy, memmove, memset

from specwire.generated.native_numbers cimport put_number
from specwire.generated.native_octets cimport Run, content_of, find, left, utf8_of
from specwire.generated.native_reading cimport held_run

cdef extern from "Python.h":
    PyObject* new_bytes "PyBytes_FromStringAndSize" (const char*, Py_ssize_t)
    int resize_bytes "_PyBytes_Resize" (PyObject**, Py_ssize_t)
    char* address_of "PyBytes_AS_STRING" (PyObject*)
    void Py_XDECREF(PyObject*)
    void Py_DECREF(PyObject*)

cdef enum:
    LOCAL_OCTETS = 1000


cdef struct Writer:
    uint8_t* begin
    uint8_t* at
    uint8_t* end
    PyObject* grown
    uint8_t local[LOCAL_OCTETS]


cdef inline void begin(Writer* out) noexcept:
    out.begin = out.at = out.local
    out.end = out.begin + LOCAL_OCTETS
    out.grown = NULL


cdef inline bytes finish(Writer* out):
    """Return the octets written so far as a frame."""
    cdef Py_ssize_t octets = out.at - out.begin
    if out.grown == NULL:
        return PyBytes_FromStringAndSize(<char*>out.begin, octets)
    if resize_bytes(&out.grown, octets) < 0:
        PyErr_Clear()
        return None
    cdef object frame = <object>out.grown
    Py_DECREF(out.grown)
    out.grown = NULL
    return <bytes>frame


cdef inline object drop(Writer* out):
    """Discard the frame; return None."""
    Py_XDECREF(out.grown)
    out.grown = NULL
    return None


cdef inline bint grow(Writer* out, Py_ssize_t octets) noexcept:
    cdef Py_ssize_t used = out.at - out.begin
    cdef Py_ssize_t wanted = 2 * used + octets + 64
    if out.grown == NULL:
        out.grown = new_bytes(NULL, wanted)
        if out.grown != NULL:
            memcpy(address_of(out.grown), out.begin, used)
    elif resize_bytes(&out.grown, wanted) < 0:
        out.grown = NULL
    if out.grown == NULL:
        PyErr_Clear()
        # The object is gone. Without room, nothing more is written either.
        out.begin = out.at = out.end = out.local
        return False
    out.begin = <uint8_t*>address_of(out.grown)
    out.at = out.begin + used
    out.end = out.begin + wanted
    return True


cdef inline bint room(Writer* out, Py_ssize_t octets) noexcept:
    return out.end - out.at >= octets or grow(out, octets)


cdef inline Py_ssize_t written(const Writer* out) noexcept nogil:
    return out.at - out.begin


cdef inline bint put_octets(Writer* out, const uint8_t* octets, Py_ssize_t count) noexcept:
    if not room(out, count):
        return False
    memcpy(out.at, octets, count)
    out.at += count
    return True


cdef inline bint put_literal(Writer* out, const char* octets, Py_ssize_t count) noexcept:
    return put_octets(out, <const uint8_t*>octets, count)


cdef inline bint put_padding(Writer* out, Py_ssize_t octets, uint8_t fill) noexcept:
    if not room(out, octets):
        return False
    memset(out.at, fill, octets)
    out.at += octets
    return True


cdef inline bint put_text(Writer* out, object text) noexcept:
    cdef Py_ssize_t count
    cdef const uint8_t* octets = utf8_of(text, &count)
    return octets != NULL and put_octets(out, octets, count)


cdef inline bint put_terminated(Writer* out, object text) noexcept:
    """Put a text that must not contain NUL."""
    cdef Py_ssize_t count
    cdef const uint8_t* octets = utf8_of(text, &count)
    if octets == NULL or (count and memchr(octets, 0, count) != NULL):
        return False
    return put_octets(out, octets, count)


cdef inline bint put_text_until(Writer* out, object text, const char* until, Py_ssize_t size) noexcept:
    """Put a text whose terminator `until` follows it and must not occur earlier."""
    cdef Py_ssize_t count
    cdef const uint8_t* octets = utf8_of(text, &count)
    cdef uint8_t* start
    if octets == NULL or not put_octets(out, octets, count) or not room(out, size):
        return False
    memcpy(out.at, until, size)
    start = out.at - count
    return find(start, out.at + size, until, size) == out.at


cdef inline bint put_fixed_text(Writer* out, object text, Py_ssize_t size) noexcept:
    cdef Py_ssize_t count
    cdef const uint8_t* octets = utf8_of(text, &count)
    return octets != NULL and count == size and put_octets(out, octets, count)


cdef inline bint put_padded(Writer* out, object text, Py_ssize_t size, uint8_t fill) noexcept:
    cdef Py_ssize_t count
    cdef const uint8_t* octets = utf8_of(text, &count)
    if octets == NULL or count > size or (count and octets[count - 1] == fill) or not room(out, size):
        return False
    memcpy(out.at, octets, count)
    memset(out.at + count, fill, size - count)
    out.at += size
    return True


cdef inline bint put_content(Writer* out, object octets, Py_ssize_t least, Py_ssize_t most) noexcept:
    """Put opaque octets; `most` is -1 for no limit."""
    cdef Py_ssize_t count
    cdef const uint8_t* at = content_of(octets, &count)
    if at == NULL or count < least or (most >= 0 and count > most):
        return False
    return put_octets(out, at, count)


cdef inline bint put_divided(Writer* out, object name, object value, bint first, Py_ssize_t size) noexcept:
    """Put name and value as one text of `size` octets, or of any number if `size` is -1.

    The side before the separator must not contain another ``=``.
    """
    cdef Py_ssize_t before, after
    cdef const uint8_t* name_octets = utf8_of(name, &before)
    cdef const uint8_t* value_octets = utf8_of(value, &after)
    if name_octets == NULL or value_octets == NULL:
        return False
    if memchr(name_octets if first else value_octets, c"=", before if first else after) != NULL:
        return False
    if size >= 0 and before + 1 + after != size:
        return False
    if not room(out, before + 1 + after):
        return False
    memcpy(out.at, name_octets, before)
    out.at[before] = c"="
    memcpy(out.at + before + 1, value_octets, after)
    out.at += before + 1 + after
    return True


cdef inline bint count_in(object items, uint64_t* count) noexcept:
    """Set `count` to the number of items in a tuple or held loop."""
    if PyTuple_CheckExact(items):
        count[0] = PyTuple_GET_SIZE(items)
        return True
    if not PyBytes_CheckExact(items) or PyBytes_GET_SIZE(items) < <Py_ssize_t>sizeof(count[0]):
        return False
    held_run(<bytes>items, count)
    return True


cdef inline bint put_held(Writer* out, bytes items) noexcept:
    cdef uint64_t count
    cdef Run run = held_run(items, &count)
    return put_octets(out, run.at, left(&run))


cdef inline uint8_t* opened(Writer* out, Py_ssize_t mark, Py_ssize_t count) noexcept:
    """Make room before the octets since `mark`; return its address, NULL if there is none."""
    cdef Py_ssize_t moved = written(out) - mark
    if not room(out, count):
        return NULL
    memmove(out.begin + mark + count, out.begin + mark, moved)
    out.at += count
    return out.begin + mark


cdef inline bint insert(Writer* out, Py_ssize_t mark, const uint8_t* octets, Py_ssize_t count) noexcept:
    cdef uint8_t* at = opened(out, mark, count)
    if at == NULL:
        return False
    memcpy(at, octets, count)
    return True


cdef inline bint insert_size(Writer* out, Py_ssize_t mark, const char* tag, int tag_octets, int width) noexcept:
    """Insert a tag and the number of octets since `mark` before those octets."""
    cdef Py_ssize_t size = written(out) - mark
    cdef uint8_t* at = opened(out, mark, tag_octets + width)
    if at == NULL:
        return False
    memcpy(at, tag, tag_octets)
    put_number(at + tag_octets, size, width)
    return True
