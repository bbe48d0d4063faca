"""Strict JSON: the only thing that crosses the contract.

Objects with string keys, arrays, strings, finite numbers, booleans and null. No NaN, no lone surrogates, no
integers beyond 64 bits, no handles.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec

from envharness_core.errors import DataError

if TYPE_CHECKING:
    Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
    JsonObject: TypeAlias = dict[str, Json]
else:  # a recursive alias can't be resolved at run time, where cattrs reads annotations
    Json = Any
    """Any strict JSON value."""
    JsonObject = dict[str, Any]
    """A strict JSON object: what ``data``, ``info``, ``metrics`` and states are."""


def copy_json(value: object, path: str = "") -> Json:
    """Return a deep copy of a strict JSON value; tuples become lists.

    Raises:
        DataError: the value isn't strict JSON; names the key path, starting with ``path``.
    """
    try:
        return _copy(value)
    except DataError as error:
        raise error.within(path) from None
    except RecursionError:
        raise DataError(path, "nested too deeply, or contains itself") from None


def copy_object(value: object, path: str = "") -> JsonObject:
    """Return a deep copy of a strict JSON object.

    Raises:
        DataError: the value isn't an object, or something in it isn't strict JSON.
    """
    if isinstance(value, dict):
        if not value:
            return {}
        copied = _quick_copy(value) if _is_plain(type(value)) else None
        if copied is not None:
            return copied
    elif not isinstance(value, Mapping):
        raise DataError(path, f"expected an object, got {type(value).__name__}")
    try:
        return _copy_dict(value)
    except DataError as error:
        raise error.within(path) from None
    except RecursionError:
        raise DataError(path, "nested too deeply, or contains itself") from None


def canonical(value: Json) -> bytes:
    """Encode a strict JSON value so that equal values give equal bytes (sorted keys, UTF-8).

    Raises:
        DataError: a text has a lone surrogate.
    """
    try:
        return _CANONICAL.encode(value).encode()
    except UnicodeEncodeError:
        raise DataError("", "text with a lone surrogate can't be encoded") from None


def digest(value: Json) -> str:
    """Return a content hash of a strict JSON value, 32 hexadecimal characters."""
    return hashlib.blake2b(canonical(value), digest_size=16).hexdigest()


def _quick_copy(value: dict[Any, Any]) -> JsonObject | None:
    """Return a copy of a small and shallow object of plain JSON, or None where only a look at each item can tell.

    An object that comes back from msgpack as the types of JSON and still equals itself is strict JSON: what msgpack
    turns into something else (a set, a date, a tuple) isn't equal to what it became.
    """
    try:
        encoded = _encode(value)
        copied = _decode(encoded) if len(encoded) <= _SMALL else _copied_by_parts(value)
    except (TypeError, ValueError, OverflowError, RecursionError, DataError):  # msgspec's own are ValueErrors
        return None
    return copied if copied == value else None


def _is_plain(cls: type[dict[Any, Any]]) -> bool:
    """Say whether a class holds and compares its items as ``dict`` does."""
    return cls is dict or (cls.items is dict.items and cls.__eq__ is dict.__eq__)


def _copied_by_parts(value: dict[Any, Any]) -> JsonObject:
    """Copy a large object: its own texts as they are, which costs nothing, and what is nested in it by msgpack."""
    copied: JsonObject = {}
    for key, item in value.items():
        if type(key) is not str:
            raise TypeError("a key that isn't text")
        nested = type(item) in (dict, list)
        copied[_copy_str(key)] = _decode_part(_encode(item)) if nested else _copy(item)
    return copied


def _copy(value: Any) -> Json:
    copier = _COPIERS.get(type(value))
    return copier(value) if copier is not None else _copy_unusual(value)


def _same(value: Any) -> Json:
    return value  # type: ignore[no-any-return]  # dispatched on its exact type


def _copy_str(value: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise DataError("", "text with a lone surrogate can't be encoded") from None
    return value


def _copy_int(value: int) -> int:
    if not _SMALLEST <= value <= _LARGEST:
        raise DataError("", "an integer beyond 64 bits can't be encoded; write it as text")
    return value


def _copy_float(value: float) -> float:
    if not isfinite(value):
        raise DataError("", f"{value} is not a JSON number")
    return value


def _copy_list(value: list[Any] | tuple[Any, ...]) -> list[Json]:
    out: list[Json] = []
    try:
        for item in value:
            out.append(_copy(item))  # noqa: PERF401 - its length says where it stopped
    except DataError as error:
        raise error.within(f"[{len(out)}]") from None
    return out


def _copy_dict(value: Mapping[Any, Any]) -> JsonObject:
    out: JsonObject = {}
    for key, item in value.items():
        if type(key) is not str:
            if not isinstance(key, str):
                raise DataError("", f"the key {key!r:.100} is not a string")
            key = str.__str__(key)
        _copy_str(key)
        try:
            out[key] = _copy(item)
        except DataError as error:
            raise error.within(key) from None
    return out


def _copy_unusual(value: Any) -> Json:
    """Reduce a subclass (a str enum, a numpy float, a defaultdict) to its plain base."""
    if isinstance(value, str):
        return _copy_str(str.__str__(value))
    if isinstance(value, int):
        return _copy_int(int(value))
    if isinstance(value, float):
        return _copy_float(float(value))
    if isinstance(value, Mapping):
        return _copy_dict(value)
    if isinstance(value, list | tuple):
        return _copy_list(value)
    raise DataError("", f"{type(value).__name__} is not strict JSON; encode it as plain data")


_SMALLEST, _LARGEST = -(2**63), 2**64 - 1  # what msgpack, in which events are kept, can hold

_COPIERS: dict[type, Callable[[Any], Json]] = {
    str: _copy_str,
    int: _copy_int,
    bool: _same,
    type(None): _same,
    float: _copy_float,
    list: _copy_list,
    tuple: _copy_list,
    dict: _copy_dict,
}

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)

_SMALL = 4096  # bytes; beyond, an object's own long texts are worth not being copied

_Finite = Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
_Leaf = str | int | _Finite | bool | None
_Shallow: Any = _Leaf
for _ in range(4):
    _Shallow = _Leaf | list[_Shallow] | dict[str, _Shallow]  # msgspec knows no recursive alias

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, _Shallow]).decode
_decode_part = msgspec.msgpack.Decoder(_Shallow).decode
