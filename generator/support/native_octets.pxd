"""Octets in memory for the compiled codecs: frames and texts.

No function here raises. For a value that it refuses, a function returns None, -1 or False. The caller then runs
the pure codec, which accepts the value or raises the error. So a Python error set on the way, for example for
octets that are not UTF-8, is cleared here.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_Clear
from cpython.list cimport PyList_CheckExact, PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_SIZE
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(PyObject*, Py_ssize_t*)
    PyObject* PyUnicode_DecodeUTF8(const char*, Py_ssize_t, const char*)
    bint PyUnicode_CheckExact(object)
    void Py_DECREF(PyObject*)
    bint is_bytes "PyBytes_CheckExact" (PyObject*)
    Py_ssize_t size_of "PyBytes_GET_SIZE" (PyObject*)
    PyObject* list_item "PyList_GET_ITEM" (PyObject*, Py_ssize_t)
    PyObject* tuple_item "PyTuple_GET_ITEM" (PyObject*, Py_ssize_t)


cdef struct Run:
    # Octets that are not read yet.
    const uint8_t* at
    const uint8_t* end


# Frames

cdef inline Py_ssize_t plain_count(object frames, Py_ssize_t most, Py_ssize_t most_octets) noexcept:
    """Return the number of frames in a list or tuple of bytes; -1 for other types or beyond the limits."""
    cdef Py_ssize_t count, index, octets = 0
    cdef bint listed = PyList_CheckExact(frames)
    cdef PyObject* frame
    if listed:
        count = PyList_GET_SIZE(frames)
    elif PyTuple_CheckExact(frames):
        count = PyTuple_GET_SIZE(frames)
    else:
        return -1
    if count > most:
        return -1
    for index in range(count):
        frame = list_item(<PyObject*>frames, index) if listed else tuple_item(<PyObject*>frames, index)
        if not is_bytes(frame):
            return -1
        octets += size_of(frame)
    return -1 if octets > most_octets else count


cdef inline bytes frame_at(object frames, Py_ssize_t index):
    """Return a new reference to a frame; None if it is missing (a list can change while Python runs)."""
    cdef object frame = None
    if PyList_CheckExact(frames):
        if 0 <= index < PyList_GET_SIZE(frames):
            frame = <object>list_item(<PyObject*>frames, index)
    elif 0 <= index < PyTuple_GET_SIZE(frames):
        frame = <object>tuple_item(<PyObject*>frames, index)
    return <bytes>frame if PyBytes_CheckExact(frame) else None


cdef inline const uint8_t* octets_of(bytes frame) noexcept:
    return <const uint8_t*>PyBytes_AS_STRING(frame)


cdef inline Run run_of(bytes frame) noexcept:
    """Return all octets of a frame to which the caller holds a reference."""
    cdef Run run
    run.at = octets_of(frame)
    run.end = run.at + PyBytes_GET_SIZE(frame)
    return run


cdef inline bint same(const uint8_t* at, const char* octets, size_t count) noexcept nogil:
    return memcmp(at, octets, count) == 0


cdef inline bint frame_is(bytes frame, const char* octets, Py_ssize_t count) noexcept:
    return PyBytes_GET_SIZE(frame) == count and same(octets_of(frame), octets, count)


cdef inline bint frame_begins(bytes frame, const char* octets, Py_ssize_t count) noexcept:
    return PyBytes_GET_SIZE(frame) >= count and same(octets_of(frame), octets, count)


cdef inline Py_ssize_t left(const Run* run) noexcept nogil:
    return run.end - run.at


# Texts and octets

cdef inline bint is_utf8(const uint8_t* at, const uint8_t* end) noexcept nogil:
    """Return whether octets are UTF-8 as in Python: shortest forms, no surrogates, up to U+10FFFF."""
    cdef uint64_t eight
    cdef uint8_t first
    cdef Py_ssize_t more
    while at < end:
        if end - at >= 8:
            memcpy(&eight, at, 8)
            if not eight & 0x8080808080808080u:
                at += 8
                continue
        first = at[0]
        if first < 0x80:
            at += 1
            continue
        if first < 0xC2 or first > 0xF4:
            return False
        more = 1 if first < 0xE0 else 2 if first < 0xF0 else 3
        if end - at <= more:
            return False
        if (first == 0xE0 and at[1] < 0xA0) or (first == 0xED and at[1] > 0x9F):
            return False
        if (first == 0xF0 and at[1] < 0x90) or (first == 0xF4 and at[1] > 0x8F):
            return False
        at += 1
        while more:
            if at[0] & 0xC0 != 0x80:
                return False
            at += 1
            more -= 1
    return True


cdef inline str text_of(const uint8_t* at, Py_ssize_t octets):
    """Return octets as text, None if they are not UTF-8."""
    cdef PyObject* text = PyUnicode_DecodeUTF8(<const char*>at, octets, NULL)
    if text == NULL:
        PyErr_Clear()
        return None
    cdef object held = <object>text
    Py_DECREF(text)
    return <str>held


cdef inline bytes bytes_of(const uint8_t* at, Py_ssize_t octets):
    return PyBytes_FromStringAndSize(<const char*>at, octets)


cdef inline const uint8_t* utf8_of(object text, Py_ssize_t* octets) noexcept:
    """Return the UTF-8 octets, owned by the text; NULL if it is no `str` or has surrogates."""
    cdef const char* found
    if not PyUnicode_CheckExact(text):
        return NULL
    found = PyUnicode_AsUTF8AndSize(<PyObject*>text, octets)
    if found == NULL:
        PyErr_Clear()
    return <const uint8_t*>found


cdef inline const uint8_t* content_of(object octets, Py_ssize_t* count) noexcept:
    """Return the octets of `bytes`; NULL for any other type, including views and byte arrays."""
    if not PyBytes_CheckExact(octets):
        return NULL
    count[0] = PyBytes_GET_SIZE(octets)
    return octets_of(<bytes>octets)


cdef inline bytes frame_of_text(object text):
    """Return a text as a frame, None if it cannot be encoded."""
    cdef Py_ssize_t octets
    cdef const uint8_t* at = utf8_of(text, &octets)
    return None if at == NULL else bytes_of(at, octets)


cdef inline const uint8_t* find(const uint8_t* at, const uint8_t* end, const char* octets, Py_ssize_t count) noexcept nogil:
    """Return the address of the first `octets`, NULL if there are none."""
    while end - at >= count:
        at = <const uint8_t*>memchr(at, (<const uint8_t*>octets)[0], end - at - count + 1)
        if at == NULL:
            return NULL
        if same(at, octets, count):
            return at
        at += 1
    return NULL


cdef inline bytes frame_of_terminated(object text):
    """Return a text without NUL as a frame, None if it contains NUL or cannot be encoded."""
    cdef Py_ssize_t octets
    cdef const uint8_t* at = utf8_of(text, &octets)
    return None if at == NULL or (octets and memchr(at, 0, octets) != NULL) else bytes_of(at, octets)


cdef inline bint append_text(list made, object text, bint terminated):
    """Append a text as a frame; return False if it cannot be encoded, or if a `terminated` one contains NUL."""
    cdef bytes frame = frame_of_terminated(text) if terminated else frame_of_text(text)
    if frame is None:
        return False
    made.append(frame)
    return True


cdef inline bint append_octets(list made, object octets):
    """Append `bytes` as a frame; return False for another type."""
    if not PyBytes_CheckExact(octets):
        return False
    made.append(octets)
    return True
