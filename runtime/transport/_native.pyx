# cython: language_level=3, boundscheck=False, wraparound=False, auto_pickle=False, binding=True
"""Whole messages in and out of a ZeroMQ socket, compiled: what `specwire.runtime.transport.messages` does with pyzmq.

It calls the libzmq that pyzmq has loaded, whose functions are looked up through pyzmq's own module when this one is
imported; neither header nor library is needed to compile it. Where they are not found, or not the same ones, the import
fails, and pyzmq does the work.

How memory is kept safe:

- A socket is asked for its address in each call: pyzmq forgets it when the socket is closed. Between that and the last
  use of the address nothing runs that could close the socket: the interpreter's lock is kept, for no call here waits, and
  nothing is made that the garbage collector counts; where it is, the address is asked for again.
- A message is whole before its first frame is sent, so one that cannot be made leaves no half of it behind. One of which
  a frame cannot be kept is read to its end, so the next message begins where it does.
- Each `msg_t` is closed where it was made, or belongs to a `_Held`, which closes it when the last view of it is gone.
- A large frame that is sent is lent: its buffer is held, so that nobody can release or change the size of what libzmq
  reads. libzmq says in any of its threads that it is done, which must not wait for the interpreter: the buffer is put
  on a list, and a bell is rung (an eventfd) for the event loops, which let go of it (`take_back`).
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.memoryview cimport PyMemoryView_FromObject
from libc.errno cimport EAGAIN, EINTR, EMSGSIZE, ENOTSOCK
from libc.string cimport memcpy

import ctypes
import os

import zmq
from zmq.backend.cython import _zmq

BUILD = "messages 6"
"""Changed with this source: `specwire.runtime.transport.messages` takes no other."""

cdef extern from *:
    """
    #include <errno.h>
    #include <stdint.h>
    #include <unistd.h>

    /* zmq_msg_t of libzmq 4.2 and later: 64 octets, aligned as pointers are. */
    typedef struct { uint64_t octets[8]; } msg_t;

    typedef struct lent_t { struct lent_t *next; Py_buffer buffer; } lent_t;

    static lent_t *returned = NULL;
    static int bell = -1;

    /* Called by libzmq, in any thread, with or without the interpreter's lock. */
    static void give_back(void *data, void *hint) {
        const int kept = errno;
        const uint64_t ring = 1;
        lent_t *lent = (lent_t *)hint, *first = __atomic_load_n(&returned, __ATOMIC_RELAXED);
        (void)data;
        do {
            lent->next = first;
        } while (!__atomic_compare_exchange_n(&returned, &first, lent, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
        /* Only the first on the list rings; from here on it may have been let go of. */
        if (first == NULL && bell >= 0 && write(bell, &ring, sizeof ring) < 0) { /* it rings already */ }
        errno = kept;
    }

    /* The bell is silenced first: what is returned after that rings again. */
    static lent_t *take_returned(void) {
        uint64_t rings;
        if (bell >= 0 && read(bell, &rings, sizeof rings) < 0) { /* it did not ring */ }
        return __atomic_exchange_n(&returned, NULL, __ATOMIC_ACQUIRE);
    }

    """
    ctypedef struct msg_t:
        pass
    ctypedef struct lent_t:
        lent_t* next
        Py_buffer buffer
    lent_t* returned
    int bell
    void give_back(void* data, void* hint) noexcept nogil
    lent_t* take_returned() noexcept nogil

ctypedef void (*free_t)(void*, void*) noexcept nogil

cdef int (*msg_init)(msg_t*) noexcept nogil
cdef int (*msg_init_size)(msg_t*, size_t) noexcept nogil
cdef int (*msg_init_data)(msg_t*, void*, size_t, free_t, void*) noexcept nogil
cdef int (*msg_send)(msg_t*, void*, int) noexcept nogil
cdef int (*msg_recv)(msg_t*, void*, int) noexcept nogil
cdef int (*msg_close)(msg_t*) noexcept nogil
cdef int (*msg_move)(msg_t*, msg_t*) noexcept nogil
cdef void* (*msg_data)(msg_t*) noexcept nogil
cdef size_t (*msg_size)(msg_t*) noexcept nogil
cdef int (*msg_more)(msg_t*) noexcept nogil
cdef int (*msg_get)(msg_t*, int) noexcept nogil
cdef const char* (*msg_gets)(msg_t*, const char*) noexcept nogil
cdef int (*getsockopt)(void*, int, void*, size_t*) noexcept nogil
cdef int (*last_errno)() noexcept nogil
cdef void (*version)(int*, int*, int*) noexcept nogil

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

cdef enum:
    FEW = 16  # frames of a message for which no memory is asked for
    COPY_LIMIT = 16 * 1024

cdef int NOW = zmq.DONTWAIT
cdef int MORE = zmq.SNDMORE
cdef int EVENTS = zmq.EVENTS
cdef int POLLIN = zmq.POLLIN
cdef int SOURCE = zmq.SRCFD


@cython.final
cdef class _Held:
    """A message of libzmq's for as long as it is looked at."""

    cdef msg_t part

    def __cinit__(self):
        msg_init(&self.part)

    def __dealloc__(self):
        msg_close(&self.part)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, msg_data(&self.part), <Py_ssize_t>msg_size(&self.part), 1, flags)


@cython.final
cdef class Traffic:
    """What has passed; see `specwire.runtime.transport.messages.PureTraffic`."""

    cdef readonly long long messages_in, octets_in, messages_out, octets_out


@cython.final
cdef class Messages:
    """The messages of one socket; see `specwire.runtime.transport.messages.PureMessages`."""

    cdef object socket
    cdef Py_ssize_t max_frames
    cdef bint guarded, addressed
    cdef Py_ssize_t viewed  # frames of so many octets are looked at and not copied
    cdef Traffic traffic
    cdef Py_ssize_t kept  # octets of the frames that were kept of the last message
    cdef set origins
    cdef readonly str user
    cdef readonly long long received

    def __init__(
        self,
        socket not None,
        Py_ssize_t max_frames,
        bint guarded,
        *,
        bint copied=False,
        Traffic traffic=None,
        bint addressed=False,
        set origins=None,
    ):
        self.socket, self.max_frames, self.guarded = socket, max_frames, guarded
        self.viewed = PY_SSIZE_T_MAX if copied else COPY_LIMIT
        self.traffic, self.addressed, self.origins = traffic, addressed, origins
        self.user = ""

    def send(self, frames not None):
        cdef int number = self.put(frames, True)
        if number and number != EAGAIN:
            raise trouble(number)
        return number == 0

    def send_all(self, messages not None, Py_ssize_t at):
        try:
            while at < len(messages) and self.put(messages[at], False) == 0:
                at += 1
        except zmq.ZMQError:  # `send` says it, too
            pass
        return at

    cdef int put(self, frames, bint lending) except -1:
        """Send a message; return what is wrong, and 0 where nothing is. A large frame is sent only if it may be lent."""
        cdef msg_t few[FEW]
        cdef msg_t* parts = few
        cdef Py_ssize_t count = len(frames), made = 0, sent = 0, octets = 0, size, at
        cdef void* socket
        cdef int number = 0
        if returned != NULL:
            take_back()
        if count > FEW:
            parts = <msg_t*>PyMem_Malloc(count * sizeof(msg_t))
            if parts == NULL:
                raise MemoryError
        try:
            for frame in frames:
                if made == count:
                    break
                if not lending and len(frame) >= COPY_LIMIT:
                    return EMSGSIZE
                size = fill(&parts[made], frame)
                if made or not self.addressed:
                    octets += size
                made += 1
            if made == 0:
                raise IndexError("a message has a frame at least")
            socket = self.address()
            while sent < made and number == 0:
                if msg_send(&parts[sent], socket, NOW | (MORE if sent + 1 < made else 0)) >= 0:
                    sent += 1
                else:
                    number = last_errno()
                    if number == EINTR:
                        number = 0
        finally:
            for at in range(sent, made):
                msg_close(&parts[at])
            if parts != few:
                PyMem_Free(parts)
        if number == 0 and self.traffic is not None:
            self.traffic.messages_out += 1
            self.traffic.octets_out += octets
        return number

    def receive_all(self, list messages not None, Py_ssize_t most, Py_ssize_t octets):
        cdef list frames
        while len(messages) < most and octets > 0:
            frames = self.get()
            if not frames:
                break
            messages.append((self.user, frames))
            octets -= self.kept

    def receive(self):
        return self.get()

    cdef list get(self):
        """Receive a message; return its frames, none where there is none."""
        cdef list frames = []
        cdef msg_t part
        cdef bint more = True
        cdef Py_ssize_t octets = 0, size
        cdef void* socket = self.address()
        cdef int number, source = -1
        self.kept = 0
        while more:
            number = take(&part, socket)
            if number == EAGAIN and not frames:
                break
            if number:
                raise trouble(number)
            more = msg_more(&part)
            if not more and self.origins is not None:
                source = msg_get(&part, SOURCE)  # before its octets are moved away, and the origin with them
            size = <Py_ssize_t>msg_size(&part)
            if frames or not self.addressed:
                octets += size
            if len(frames) < self.max_frames:
                self.kept += size
                try:
                    if self.guarded and not frames:
                        self.user = user_of(&part)
                    if size < self.viewed:
                        frames.append(PyBytes_FromStringAndSize(<char*>msg_data(&part), size))
                    else:
                        frames.append(view_of(&part))
                        socket = self.address()
                except:
                    msg_close(&part)
                    if more:
                        self.skip()
                    raise
            msg_close(&part)
        if frames and self.origins is not None:
            self.received += 1
            self.origins.add(source)
        if frames and self.traffic is not None:
            self.traffic.messages_in += 1
            self.traffic.octets_in += octets
        return frames

    def readable(self):
        cdef int events = 0
        cdef size_t size = sizeof(int)
        while getsockopt(self.address(), EVENTS, &events, &size) < 0:
            if last_errno() != EINTR:
                raise trouble(last_errno())
        return events & POLLIN != 0

    cdef void* address(self) except NULL:
        """Where libzmq has the socket; raises ZMQError where it is closed."""
        cdef size_t found = self.socket.underlying
        if found == 0:
            raise trouble(ENOTSOCK)
        return <void*>found

    cdef int skip(self) except -1:
        """Read to the end of the message."""
        cdef msg_t part
        cdef void* socket = self.address()
        cdef bint more = True
        while more and take(&part, socket) == 0:
            more = msg_more(&part)
            msg_close(&part)
        return 0


def watch(loop):
    """Let go on `loop`, too, of what libzmq has let go of. Raises OSError where there are no descriptors left."""
    if bell < 0:
        hang_bell()
        os.register_at_fork(after_in_child=part_bells)
    loop.add_reader(bell, take_back)


def take_back():
    """Let go of what libzmq has let go of."""
    cdef lent_t* lent = take_returned()
    cdef lent_t* following
    while lent != NULL:
        following = lent.next
        PyBuffer_Release(&lent.buffer)
        PyMem_Free(lent)
        lent = following


def hang_bell():
    """Open the bell, which rings at first: what was returned before that has not rung."""
    global bell
    bell = os.eventfd(1, os.EFD_CLOEXEC | os.EFD_NONBLOCK)


def part_bells():
    """Have another bell than the process that this one is a copy of, so that neither hears only half."""
    global bell
    former = bell
    bell = -1
    os.close(former)
    hang_bell()


cdef int take(msg_t* part, void* socket) noexcept nogil:
    """Receive a frame into `part`, which is closed later; return what is wrong, and 0 where nothing is."""
    cdef int number
    msg_init(part)
    while msg_recv(part, socket, NOW) < 0:
        number = last_errno()
        if number != EINTR:
            msg_close(part)
            return number
    return 0


cdef object view_of(msg_t* part):
    """Return a view of the octets, which are moved out of `part`."""
    cdef _Held held = _Held()
    msg_move(&held.part, part)
    return PyMemoryView_FromObject(held)


cdef str user_of(msg_t* part):
    """Return by what name the sender was let in."""
    cdef const char* name = msg_gets(part, b"User-Id")
    if name == NULL:
        raise trouble(last_errno())
    return name.decode("utf-8")


cdef Py_ssize_t fill(msg_t* part, object frame) except -1:
    """Make a message of a frame, which is sent or closed later; return its octets."""
    cdef lent_t* lent
    cdef Py_ssize_t size
    if type(frame) is bytes and PyBytes_GET_SIZE(frame) < COPY_LIMIT:
        size = PyBytes_GET_SIZE(frame)
        copy(part, PyBytes_AS_STRING(frame), size)
        return size
    lent = <lent_t*>PyMem_Malloc(sizeof(lent_t))
    if lent == NULL:
        raise MemoryError
    try:
        PyObject_GetBuffer(frame, &lent.buffer, PyBUF_SIMPLE)
    except:
        PyMem_Free(lent)
        raise
    size = lent.buffer.len
    try:
        if size < COPY_LIMIT:
            copy(part, <char*>lent.buffer.buf, size)
        elif msg_init_data(part, lent.buffer.buf, size, give_back, lent) == 0:
            lent = NULL
        else:
            raise MemoryError
    finally:
        if lent != NULL:
            PyBuffer_Release(&lent.buffer)
            PyMem_Free(lent)
    return size


cdef int copy(msg_t* part, const char* octets, Py_ssize_t size) except -1:
    """Make a message of octets that it gets a copy of."""
    if msg_init_size(part, size) != 0:
        raise MemoryError
    if size:
        memcpy(msg_data(part), octets, size)
    return 0


cdef object trouble(int number):
    """Return the exception that pyzmq has for it."""
    return (zmq.ContextTerminated if number == zmq.ETERM else zmq.ZMQError)(number)


cdef void* function(library, str name) except NULL:
    """Return the address of a function of libzmq; raises ImportError if it is missing or there are two.

    With two libzmq in the process, a call of pyzmq could reach the other one.
    """
    found, anywhere = address(library, name), address(ctypes.CDLL(None), name)
    if not found or anywhere not in (0, found):
        raise ImportError(f"there is no one {name} in the libzmq of pyzmq")
    return <void*><size_t>found


cdef object address(library, str name):
    """Return the address of a function of a loaded library, 0 if it has none.

    `ctypes` looks it up, because `dlsym` in C would bind this module to a recent glibc.
    """
    try:
        return ctypes.cast(library[name], ctypes.c_void_p).value
    except AttributeError:
        return 0


cdef int find_functions() except -1:
    """Look up libzmq's functions; raises ImportError."""
    global msg_init, msg_init_size, msg_init_data, msg_send, msg_recv, msg_close, msg_move, msg_data, msg_size
    global msg_more, msg_get, msg_gets, getsockopt, last_errno, version
    cdef int major = 0, minor = 0, patch = 0
    if not issubclass(zmq.Socket, _zmq.Socket):
        raise ImportError("pyzmq works in another way than by its module _zmq")
    try:
        library = ctypes.CDLL(_zmq.__file__, mode=os.RTLD_LAZY | os.RTLD_NOLOAD)
    except OSError as error:
        raise ImportError(f"pyzmq's module _zmq is not loaded: {error}") from None
    if not hasattr(os, "eventfd"):
        raise ImportError("the system has no eventfd")
    msg_init = <int (*)(msg_t*) noexcept nogil>function(library, "zmq_msg_init")
    msg_init_size = <int (*)(msg_t*, size_t) noexcept nogil>function(library, "zmq_msg_init_size")
    msg_init_data = <int (*)(msg_t*, void*, size_t, free_t, void*) noexcept nogil>function(library, "zmq_msg_init_data")
    msg_send = <int (*)(msg_t*, void*, int) noexcept nogil>function(library, "zmq_msg_send")
    msg_recv = <int (*)(msg_t*, void*, int) noexcept nogil>function(library, "zmq_msg_recv")
    msg_close = <int (*)(msg_t*) noexcept nogil>function(library, "zmq_msg_close")
    msg_move = <int (*)(msg_t*, msg_t*) noexcept nogil>function(library, "zmq_msg_move")
    msg_data = <void* (*)(msg_t*) noexcept nogil>function(library, "zmq_msg_data")
    msg_size = <size_t (*)(msg_t*) noexcept nogil>function(library, "zmq_msg_size")
    msg_more = <int (*)(msg_t*) noexcept nogil>function(library, "zmq_msg_more")
    msg_get = <int (*)(msg_t*, int) noexcept nogil>function(library, "zmq_msg_get")
    msg_gets = <const char* (*)(msg_t*, const char*) noexcept nogil>function(library, "zmq_msg_gets")
    getsockopt = <int (*)(void*, int, void*, size_t*) noexcept nogil>function(library, "zmq_getsockopt")
    last_errno = <int (*)() noexcept nogil>function(library, "zmq_errno")
    version = <void (*)(int*, int*, int*) noexcept nogil>function(library, "zmq_version")
    version(&major, &minor, &patch)
    if (major, minor, patch) != zmq.zmq_version_info() or not (4, 2) <= (major, minor) < (5, 0):
        raise ImportError(f"libzmq {major}.{minor}.{patch} may lay out its messages in another way")
    return 0


find_functions()
