"""How values are written: shapes in camelCase, times, timespans, ids, amounts, and the small types that all nouns use.

A `ResponseShape` has no defaults, so that whoever makes one says every field. A `RequestShape` takes the wire's names
only and refuses unknown fields. A shape is one or the other, never both: one component name in the OpenAPI document,
one meaning. Deliberately absent: leniency. A number in a string, a time without an offset, a negative timespan are
refused, not guessed at.

What is shown has its serializer built when it is first used (`defer_build`): a command shows few of the shapes, and starts sooner.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Generic, TypeVar
from uuid import UUID

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    Strict,
    TypeAdapter,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

_DATETIME = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})[Tt](?P<clock>(?:[01][0-9]|2[0-3]):[0-5][0-9]):(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?"
    r"(?P<offset>[Zz]|[+-][0-9]{2}:[0-9]{2})?"
)
_TIMESPAN = re.compile(
    r"(?:(?P<days>[0-9]{1,6})\.)?(?P<hours>[01][0-9]|2[0-3]):(?P<minutes>[0-5][0-9]):(?P<seconds>[0-5][0-9])"
    r"(?:\.(?P<fraction>[0-9]{1,7}))?"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def parse_datetime(value: object) -> datetime:
    """Read an RFC 3339 date-time with an offset as a time in UTC; digits below a microsecond are cut off."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise _no_offset()
        return value.astimezone(UTC)
    match = _DATETIME.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise PydanticCustomError("datetime_format", "A time is written as in 2026-10-26T12:00:00Z.")
    if match["offset"] is None:
        raise _no_offset()
    try:
        return _datetime_from(match)
    except (ValueError, OverflowError):
        message = "There is no such time; look at its month, day, hour and offset."
        raise PydanticCustomError("datetime_range", message) from None


def _no_offset() -> PydanticCustomError:
    return PydanticCustomError("datetime_offset", "A time needs an offset; end it with Z or one such as +01:00.")


def _datetime_from(match: re.Match[str]) -> datetime:
    leap = match["second"] == "60"
    second = "59" if leap else match["second"]
    zone = UTC if match["offset"] in "Zz" else _zone_from(match["offset"])
    local = datetime.fromisoformat(f"{match['date']}T{match['clock']}:{second}").replace(tzinfo=zone)
    moment = local.astimezone(UTC)
    if leap:
        # RFC 3339 puts leap seconds at the end of a UTC day only; the clock has none, so it becomes the second after.
        if (moment.hour, moment.minute) != (23, 59):
            raise ValueError
        return moment + timedelta(seconds=1)
    moment += timedelta(microseconds=_microseconds(match["fraction"]))
    if moment.replace(tzinfo=None) == datetime.max:  # the database's driver takes this one for infinity
        raise ValueError
    return moment


def _zone_from(offset: str) -> timezone:
    hours, minutes = int(offset[1:3]), int(offset[4:6])
    if hours > 23 or minutes > 59:
        raise ValueError
    span = timedelta(hours=hours, minutes=minutes)
    return timezone(-span if offset[0] == "-" else span)


def _microseconds(fraction: str | None) -> int:
    return int((fraction or "0")[:6].ljust(6, "0"))


def print_datetime(value: datetime) -> str:
    """Write a time in UTC with seven fractional digits and Z; the seventh is always 0."""
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "0Z"


def parse_timespan(value: object) -> timedelta:
    """Read `[d.]hh:mm:ss[.fffffff]`, of at most 999,999 days: any deadline is then a time. The seventh fractional digit is cut off."""
    if isinstance(value, timedelta):
        if value < timedelta(0):
            raise _negative()
        return value
    if isinstance(value, str) and value.startswith("-"):
        raise _negative()
    match = _TIMESPAN.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise PydanticCustomError(
            "timespan_format", "A timespan is written as hh:mm:ss, with up to 999,999 days as 5.00:00:00."
        )
    return timedelta(
        days=int(match["days"] or 0),
        hours=int(match["hours"]),
        minutes=int(match["minutes"]),
        seconds=int(match["seconds"]),
        microseconds=_microseconds(match["fraction"]),
    )


def _negative() -> PydanticCustomError:
    return PydanticCustomError("timespan_negative", "A timespan cannot be negative.")


def print_timespan(value: timedelta) -> str:
    """Write `[d.]hh:mm:ss[.fffffff]`; days and fraction only where there are any."""
    minutes, seconds = divmod(value.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days = f"{value.days}." if value.days else ""
    fraction = f".{value.microseconds:06}0" if value.microseconds else ""
    return f"{days}{hours:02}:{minutes:02}:{seconds:02}{fraction}"


def _parse_uuid(value: object) -> object:
    if isinstance(value, UUID) or (isinstance(value, str) and _UUID.fullmatch(value)):
        return value
    raise PydanticCustomError("uuid_format", "An id is a UUID, written as 01920000-0000-7000-8000-000000000000.")


def _parse_amount(value: object) -> object:
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return value
    raise PydanticCustomError("amount_type", "An amount is a JSON number.")


Datetime = Annotated[
    datetime,
    PlainValidator(parse_datetime),
    PlainSerializer(print_datetime, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-10-26T12:00:00.0000000Z"]}),
]
Timespan = Annotated[
    timedelta,
    PlainValidator(parse_timespan),
    PlainSerializer(print_timespan, return_type=str, when_used="json"),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": r"^([0-9]{1,6}\.)?([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,7})?$",
            "examples": ["00:05:00", "5.00:00:00"],
        }
    ),
]
Uuid = Annotated[UUID, BeforeValidator(_parse_uuid)]
# US dollars. A JSON number on the wire, a Decimal inside, so that sums are exact.
Amount = Annotated[
    Decimal,
    BeforeValidator(_parse_amount),
    Field(ge=0, allow_inf_nan=False),
    PlainSerializer(float, return_type=float, when_used="json"),
    WithJsonSchema({"type": "number", "minimum": 0}),
]
# Longer text is refused before it is stored; the bound also makes Pydantic refuse what is not valid Unicode.
Text = Annotated[str, Field(max_length=1_000_000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Flag = Annotated[bool, Strict()]
Whole = Annotated[int, Strict(), Field(ge=-(2**31), le=2**31 - 1)]
Count = Annotated[int, Strict(), Field(ge=0, le=2**31 - 1)]
Positive = Annotated[int, Strict(), Field(ge=1, le=2**31 - 1)]
Tokens = Annotated[int, Strict(), Field(ge=0, le=2**53 - 1)]
Percentage = Annotated[int, Strict(), Field(ge=1, le=100)]


class ResponseShape(BaseModel):
    """What the server says: every field is present. A reader passes over fields that a newer server adds."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        json_schema_serialization_defaults_required=True,
        extra="ignore",
        frozen=True,
        defer_build=True,
    )


class RequestShape(BaseModel):
    """What the server takes: the wire's names only, unknown ones refused. What is left out has its default."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=False,
        validate_by_alias=True,
        serialize_by_alias=True,
        extra="forbid",
        frozen=True,
    )


Shown = TypeVar("Shown")


def variant(name: str) -> str:
    """The tag of one of several shapes that a body may have: such as no field is called, for faults stand below it."""
    return f"({name})"


class Page(ResponseShape, Generic[Shown]):
    """A page of a list. `next` is the cursor to pass as `?after=`; null on the last page. Each noun names its own."""

    items: tuple[Shown, ...]
    next: str | None


class NameValuePair(ResponseShape):
    """A named value; numbers, booleans and JSON are given as JSON text."""

    name: str
    value: str


class NameValuePairRequest(RequestShape):
    """A named value; numbers, booleans and JSON are given as JSON text."""

    name: Name
    value: Text


class VersionReference(ResponseShape):
    """A definition and its version; in a link, version 0 means the latest enabled one when a run starts."""

    id: Uuid
    version: int


class VersionReferenceRequest(RequestShape):
    """A definition and its version; 0 or null means the latest enabled one when a run starts."""

    id: Uuid
    version: Count | None = None


_ReferenceText = Annotated[str, Field(min_length=1, max_length=420)]


def _one_of(text: TypeAdapter[str], shape: type[VersionReferenceRequest]) -> Callable[[object], object]:
    def parse(value: object) -> object:
        if isinstance(value, str):
            return text.validate_python(value)
        if isinstance(value, dict | shape):
            return shape.model_validate(value)
        raise PydanticCustomError("reference_type", "A reference is a name, or an object with an id and a version.")

    return parse


# A plain validator, not a union: a union would put the names of its members into the pointers of the faults.
ReferenceRequest = Annotated[
    str | VersionReferenceRequest,
    PlainValidator(
        _one_of(TypeAdapter(_ReferenceText), VersionReferenceRequest),
        json_schema_input_type=_ReferenceText | VersionReferenceRequest,
    ),
]
