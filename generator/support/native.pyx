# cython: language_level=3, boundscheck=False, wraparound=False, auto_pickle=False, binding=True
"""Base classes of compiled messages, with the behaviour of `specwire.generated.messages`.

A compiled class stores integers as C integers. Like the pure class, it also accepts a value that does not fit (out
of range, a bool, any other object); then the tuple `kept__` holds all values as passed. Each compiled class has a
*twin*, the class of the same name in the package's pure codec. Whatever the compiled class cannot encode, or finds
wrong, is passed to the twin. So both builds produce the same octets and raise the same errors.

As in the pure classes, the garbage collector does not track the fields.
"""

cimport cython
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport uint64_t

from specwire.generated.messages import Message, Record, hash_values
from specwire.generated.native_numbers cimport fits

cdef extern from "Python.h":
    Py_ssize_t PyVectorcall_NARGS(size_t) nogil
    const char* PyUnicode_AsUTF8(object) except NULL

cdef extern from *:
    """
    /* Calls use tp_vectorcall, which passes arguments as an array and creates no tuple or dictionary. Other calls of
       a class, such as those of `__new__` and compiled Cython, are redirected to it, so every message has its fields. */
    static PyObject *new_by_vectorcall(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
        PyObject *const *items = ((PyTupleObject *)args)->ob_item;
        return PyObject_VectorcallDict((PyObject *)type, items, (size_t)PyTuple_GET_SIZE(args), kwargs);
    }

    static int set_up_type(PyTypeObject *type, const char *name, void *constructor, PyObject *annotations) {
        type->tp_name = name;
        type->tp_vectorcall = (vectorcallfunc)constructor;
        type->tp_new = new_by_vectorcall;
        if (PyDict_SetItemString(type->tp_dict, "__annotations__", annotations) < 0)
            return -1;
        PyType_Modified(type);
        return 0;
    }
    """
    int set_up_type(PyTypeObject*, const char*, void*, object) except -1

cdef object _REQUIRED = object()
cdef dict _TWINS = {}
"""Compiled class -> pure class."""
cdef dict _NATIVES = {}
"""Pure class -> compiled class."""
cdef list _KEPT_NAMES = []
"""Names of classes; the C type names point into these strings."""


@cython.final
@cython.no_gc
cdef class Signature:

    def __cinit__(self, str name, tuple fields, dict defaults, bint keywords=False):
        self.name = name
        self.fields = fields
        self.defaults = [defaults.get(field, _REQUIRED) for field in fields]
        self.keywords = keywords

    cdef int bind(self, PyObject* const* args, size_t nargs, PyObject* names, PyObject** values) except -1:
        """Sort the arguments of a call (borrowed references) into the order of the fields.

        Raises:
            TypeError: there are too many arguments, or one is missing, repeated or unknown.
        """
        cdef Py_ssize_t count = len(self.fields), given = PyVectorcall_NARGS(nargs), index
        cdef object default
        if given > (0 if self.keywords else count):
            raise TypeError(f"{self.name} takes {0 if self.keywords else count} positional arguments, not {given}")
        for index in range(count):
            values[index] = args[index] if index < given else NULL
        if names != NULL:
            self.by_name(args + given, <tuple>names, values)
        for index in range(count):
            if values[index] == NULL:
                default = self.defaults[index]
                if default is _REQUIRED:
                    raise TypeError(f"{self.name} lacks the argument {self.fields[index]!r}")
                values[index] = <PyObject*>default
        return 0

    cdef int by_name(self, PyObject* const* args, tuple names, PyObject** values) except -1:
        cdef Py_ssize_t index, number
        for number in range(len(names)):
            index = self.place_of(names[number])
            if values[index] != NULL:
                raise TypeError(f"{self.name} got two values for {names[number]!r}")
            values[index] = args[number]
        return 0

    cdef Py_ssize_t place_of(self, object name) except -1:
        cdef Py_ssize_t index
        for index in range(len(self.fields)):
            # Names in source code are interned, so comparing by identity nearly always succeeds.
            if self.fields[index] is name:
                return index
        if name not in self.fields:
            raise TypeError(f"{self.name} has no field {name!r}")
        return self.fields.index(name)


@cython.no_gc
cdef class NativeRoot:

    cdef tuple values__(self):
        """Return the values of the fields in wire order."""
        return ()


class _SignatureOfTwin:
    """Signature of a class for `inspect` and `help`, with the types that C does not store."""

    def __get__(self, instance, owner):
        from inspect import signature

        return signature(_TWINS[owner]) if owner in _TWINS else None


@cython.no_gc
cdef class NativeRecord(NativeRoot, Record):
    """Record with C members; see `Record` for its methods."""

    __match_args__ = ()
    __signature__ = _SignatureOfTwin()

    def _values(self):
        return self.values__()

    def __eq__(self, other):
        if type(self) is type(other):
            return self is other or self.values__() == (<NativeRoot>other).values__()
        if type(other) is _TWINS.get(type(self)):
            return self.values__() == tuple([getattr(other, name) for name in type(other).__match_args__])
        return NotImplemented

    def __hash__(self):
        return hash_values(self.NAME, self.values__())


@cython.no_gc
cdef class NativeMessage(NativeRecord, Message):
    """Message with C members; see `Message` for its methods."""

    cdef list frames__(self):
        """Return the frames of the message, or None if the twin must encode it or raise the error."""
        return None

    def encode(self, *, strict=False):
        """Return the ZeroMQ frames of the message.

        Args:
            strict: write the letter of the specification instead of what deployed peers read.

        Raises:
            EncodeError: a field's value cannot be put on the wire.
        """
        cdef list frames = None
        if strict is False and self.kept__ is None:
            frames = self.frames__()
        if frames is not None:
            return frames
        if type(self) not in _TWINS:
            return Message.encode(self, strict=strict)
        return pure(self).encode(strict=strict)


cdef tuple keep(PyObject** values, Py_ssize_t count):
    """Return values as they were passed to a constructor."""
    cdef tuple kept = PyTuple_New(count)
    cdef Py_ssize_t index
    for index in range(count):
        Py_INCREF(<object>values[index])
        PyTuple_SET_ITEM(kept, index, <object>values[index])
    return kept


cdef object pure(object value):
    """Return `value` with every compiled record or message replaced by its twin."""
    if type(value) in _TWINS:
        return _TWINS[type(value)](**_named(value, pure))
    if type(value) is tuple:
        return tuple([pure(item) for item in value])
    return value


cdef object native(object value):
    """Return `value` with every pure record or message replaced by the compiled one."""
    if type(value) in _NATIVES:
        return _NATIVES[type(value)](**_named(value, native))
    if type(value) is tuple:
        return tuple([native(item) for item in value])
    return value


cdef dict _named(object record, object (*converted)(object)):
    """Return the converted fields of a record by name."""
    return {name: converted(getattr(record, name)) for name in type(record).__match_args__}


cdef int enrol(type cls, object twin, void* constructor) except -1:
    """Register a compiled class; `constructor` is the `vectorcallfunc` that a call of the class runs.

    The class gets the name and annotations of its twin, as exported by the package.
    """
    cdef str name = f"{twin.__module__}.{twin.__qualname__}"
    _KEPT_NAMES.append(name)
    _TWINS[cls] = twin
    _NATIVES[twin] = cls
    set_up_type(<PyTypeObject*>cls, PyUnicode_AsUTF8(name), constructor, twin.__annotations__)
    return 0


cdef object uuid_of(bytes octets, bint little):
    """Return 16 octets as a UUID; with `little`, its first three parts are little-endian."""
    from uuid import UUID

    return UUID(None, None, octets) if little else UUID(None, octets)


cdef bytes octets_of_uuid(object value, bint little):
    """Return the octets of a UUID, None for another type."""
    from uuid import UUID

    if type(value) is not UUID:
        return None
    return value.bytes_le if little else value.bytes


cdef bint checksum_of(str algorithm, bytes octets, uint64_t* value) noexcept:
    """Set `value` to the checksum of octets; return False if the function of the user fails."""
    from specwire.generated.checksums import compute_checksum

    cdef object found
    try:
        found = compute_checksum(algorithm, octets)
    except Exception:
        return False
    return fits(<PyObject*>found, <uint64_t>-1, value)
