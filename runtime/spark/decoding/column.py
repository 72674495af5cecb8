"""Column functions that decode frames in a column of any DataFrame, and encode messages to frames.

    from specwire.runtime.spark import from_specwire, to_specwire

    df.select("key", from_specwire("value", "flux").alias("m")).where("m._message = 'Event'")

They need no capture and keep the caller's columns, like `from_protobuf` and `to_protobuf`. A column
has no session, so `from_specwire` chooses its back end in the active session.
"""

from __future__ import annotations

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from specwire.runtime.packages import REGISTRY
from specwire.runtime.spark.decoding.backends import ARROW, find_backend, load_backend
from specwire.runtime.spark.decoding.decode import once, shape_struct
from specwire.runtime.spark.decoding.encode import encode_decoded, encode_message, wire
from specwire.runtime.spark.decoding.options import (
    Mode,
    check_messages,
    read_options,
    resolve_dialect,
    struct_type,
)
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import known_protocols, load_schemas, role_letters
from specwire.runtime.spark.session.executors import ship_packages

OPTIONS = ("mode", "dialect", "message", "debug", "u64")
"""Options of `decode` that apply to a column."""


def from_specwire(
    data: Column | str,
    protocol: str,
    *,
    backend: str = "auto",
    mode: str = "PERMISSIVE",
    sender: Column | str | None = None,
    **options: object,
) -> Column:
    """Decode a column of frames to a struct; null where the column is null.

    The struct has the columns that `decode` adds: `_message`, `_error`, `_frames` and a struct for
    each message type. With `message`, the result is that message's struct alone, null in rows of
    other messages and of errors.

    Args:
        data: BINARY (a message of one frame, or one unit of a stream protocol) or ARRAY<BINARY>
            (all frames).
        protocol: the name of a package.
        backend: ``auto``, ``jvm``, ``arrow`` or ``python``; all give the same values.
        mode: PERMISSIVE keeps rows with errors; FAILFAST fails the query at the first.
        sender: the column of role letters, or one letter for all rows. Used only by protocols whose
            octets alone do not identify messages.
        options: ``message`` (one class), ``dialect``, ``debug`` and ``u64``, as for `decode`.

    Raises:
        InputError: an argument is unknown or cannot apply to a column, or there is no active Spark
            session.
    """
    checked = read_options({"mode": mode, **options}, OPTIONS)
    if checked.mode is Mode.DROPMALFORMED:
        raise InputError("a column cannot drop rows: use PERMISSIVE and filter on _error, or use decode()")
    if len(checked.message) > 1:
        raise InputError(
            f"option 'message' names {', '.join(checked.message)}; from_specwire() takes one class, or none for all"
        )
    protocol = resolve_dialect(protocol, checked.dialect)
    check_messages(protocol, checked.message)
    if isinstance(sender, str):
        sender = F.lit(sender) if sender in role_letters(protocol) else F.col(sender)
    decoder = find_backend(backend, _active_session("from_specwire"), protocol)
    found = decoder.column(_column(data), protocol, sender)
    return shape_struct(found, protocol, checked).alias(f"from_specwire({protocol})")


def to_specwire(
    data: Column | str,
    protocol: str,
    *,
    message: str | None = None,
    mode: str = "FAILFAST",
    single_frame: bool = False,
) -> Column:
    """Encode a column of messages to frames: ARRAY<BINARY>, null where there is no message.

    Python workers encode, regardless of the back end that decodes.

    Args:
        data: a struct as `from_specwire` returns it without options, or with `message` a struct of
            that message's fields, in any order.
        protocol: the name of a package.
        message: the class of all messages.
        mode: FAILFAST fails the query at a message that cannot be encoded; PERMISSIVE gives null.
        single_frame: return BINARY. A message of several frames then cannot be encoded.

    Raises:
        InputError: an argument is unknown, or there is no active Spark session.
    """
    checked = read_options({"mode": mode}, ("mode",))
    if checked.mode is Mode.DROPMALFORMED:
        raise InputError("a column cannot drop rows: use PERMISSIVE and filter the nulls, or use encode()")
    schemas = load_schemas(protocol)
    ship_packages(_active_session("to_specwire"), protocol)
    if message is not None and message not in schemas.SCHEMAS:
        raise InputError(f"{protocol} has no message {message!r}; it has {', '.join(schemas.SCHEMAS)}")

    def frames_or_error(encoded: Column) -> Column:
        frames, error = encoded["frames"], encoded["error"]
        found = frames
        if single_frame:
            count = F.size(frames)
            several = F.concat(F.lit("the message has "), count.cast("string"), F.lit(" frames, not one"))
            error = F.coalesce(error, F.when(frames.isNotNull() & (count != 1), several))
            found = F.get(frames, F.lit(0))
        if checked.mode is not Mode.FAILFAST:
            return F.when(error.isNull(), found)
        return F.when(error.isNull(), found).otherwise(F.raise_error(F.concat(F.lit(f"{protocol}: "), error)))

    column = _column(data)
    if message is None:
        type = struct_type(protocol)
        sent = once(column, lambda row: wire(row, type))
        encoded = encode_decoded(sent, type, protocol)
    else:
        encoded = encode_message(column, message, protocol)
    return once(encoded, frames_or_error).alias(f"to_specwire({protocol})")


def register_functions(spark: SparkSession) -> None:
    """Register the SQL functions of all known protocols in a session.

    Protocols with Java decoders have ``specwire.from_flux(value)``. The others have
    ``specwire_from_flux(value)``, because Spark's session catalog has no functions of Python with a
    dot in their names.
    """
    java, others = load_backend("jvm"), REGISTRY.others()
    ours = [protocol for protocol in known_protocols() if protocol not in others]
    # One jar has the decoders of all protocols that come with specwire, so one check is enough.
    # Each check costs a query that Spark analyses.
    unavailable = java.available(spark, ours[0])
    for protocol in known_protocols():
        if java.available(spark, protocol) if protocol in others else unavailable:
            spark.udf.register(f"specwire_from_{protocol}", ARROW.function(protocol))


def _active_session(caller: str) -> SparkSession:
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        raise InputError(f"{caller}() needs a Spark session: create one first") from None


def _column(data: Column | str) -> Column:
    return F.col(data) if isinstance(data, str) else data
