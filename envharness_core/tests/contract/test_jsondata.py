"""Strict JSON: what passes, what doesn't, and what the error says."""

from __future__ import annotations

import json
from collections import OrderedDict
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core.errors import DataError
from envharness_core.jsondata import canonical, copy_json, copy_object, digest

ENCODABLE = st.text(st.characters(exclude_categories=["Cs"]))
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | ENCODABLE
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ENCODABLE, inner, max_size=4),
    max_leaves=12,
)


PAD = ["x" * 100] * 50  # makes an object a large one, which is copied in another way


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    ONE = 1


def _lists(value: Any) -> list[int]:
    if isinstance(value, dict):
        return [id(value), *[found for item in value.values() for found in _lists(item)]]
    return (
        [id(value), *[found for item in value for found in _lists(item)]] if isinstance(value, list) else []
    )


@given(JSON)
def test_json_is_copied_deeply_and_equal(value: Any) -> None:
    copied = copy_json(value)
    assert copied == value
    assert not set(_lists(value)) & set(_lists(copied))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(copied)) == value
    assert json.loads(canonical(copied)) == value
    for parts in ({"value": value}, {"value": value, "pad": PAD}):
        whole = copy_object(parts)
        assert whole == parts
        assert [type(item) for item in whole.values()] == [type(item) for item in parts.values()]
        assert not set(_lists(parts)) & set(_lists(whole))


@given(st.dictionaries(ENCODABLE, JSON))
def test_equal_values_have_one_digest_whatever_their_order(value: dict[str, Any]) -> None:
    turned = dict(reversed(value.items()))
    assert canonical(turned) == canonical(value)
    assert digest(turned) == digest(value)
    assert len(digest(value)) == 32


@pytest.mark.parametrize(
    ("value", "path", "problem"),
    [
        (float("nan"), "a", "nan is not a JSON number"),
        (float("inf"), "a", "inf is not a JSON number"),
        ({1, 2}, "a", "set is not strict JSON"),
        (object(), "a", "object is not strict JSON"),
        (b"x", "a", "bytes is not strict JSON"),
        ({"b": [0, {"c": {3}}]}, "a.b[1].c", "set is not strict JSON"),
        ({1: 2}, "a", "the key 1 is not a string"),
        ("\ud83d", "a", "lone surrogate"),
        ({"\ud83d": 1}, "a", "lone surrogate"),
        (2**64, "a", "beyond 64 bits"),
        (-(2**63) - 1, "a", "beyond 64 bits"),
    ],
)
def test_what_is_not_json_is_named_by_its_path(value: object, path: str, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        copy_json({"a": value})
    assert caught.value.path == path
    assert problem in caught.value.problem
    for pad in ({}, {"pad": PAD}):
        with pytest.raises(DataError) as caught:
            copy_object({**pad, "a": value})
        assert caught.value.path == path
        assert problem in caught.value.problem


def test_subclasses_become_their_plain_base() -> None:
    class Number(float):
        pass

    given = OrderedDict(colour=Colour.RED, level=Level.ONE, number=Number(1.5), pair=(1, 2))
    copied = copy_object(given)
    assert copied == {"colour": "red", "level": 1, "number": 1.5, "pair": [1, 2]}
    assert [type(item) for item in copied.values()] == [str, int, float, list]
    assert type(copied) is dict
    assert copy_object(MappingProxyType({"a": 1})) == {"a": 1}


@pytest.mark.parametrize("value", [None, [], "text", 1])
def test_what_is_no_object_is_refused(value: object) -> None:
    with pytest.raises(DataError, match=f"info: expected an object, got {type(value).__name__}"):
        copy_object(value, "info")


def test_what_contains_itself_is_refused() -> None:
    endless: dict[str, Any] = {}
    endless["self"] = endless
    with pytest.raises(DataError, match="contains itself"):
        copy_json(endless)
    with pytest.raises(DataError, match="contains itself"):
        copy_object(endless)
