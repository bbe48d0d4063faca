"""From plain data to typed configs and back, with errors that name the field and what is allowed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, MutableSequence
from typing import Any, Literal, TypeVar, get_args, get_origin

import attrs
import msgspec
from cattrs import (
    ClassValidationError,
    Converter,
    ForbiddenExtraKeysError,
    IterableValidationError,
)
from cattrs.gen import make_dict_structure_fn

from envharness_core.errors import ConfigError, DataError, EnvHarnessError, nearest
from envharness_core.jsondata import Json, JsonObject, copy_json, copy_object
from envharness_core.sandbox.config import SandboxConfig
from envharness_core.spec import ComponentSpec

T = TypeVar("T")

_LITERAL: Any = Literal
_COMPONENT_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "use": {"type": "string", "description": "the component's name; its own keys stand beside it"}
    },
    "required": ["use"],
}


def structure(data: object, cls: type[T], where: str) -> T:
    """Make a typed config of plain data.

    Args:
        data: what was parsed from TOML or JSON.
        cls: the attrs class to make.
        where: what the user calls this data, such as ``layers[0] (flaky_tools/flaky_tools)``.

    Raises:
        ConfigError: one line for each field that is wrong, with its path.
    """
    try:
        return _CONVERTER.structure(data, cls)
    except Exception as error:
        lines = list(_lines(error, where, cls))
        raise ConfigError("; ".join(dict.fromkeys(lines))) from error


def unstructure(value: object) -> JsonObject:
    """Return an attrs instance as plain data, the inverse of ``structure``."""
    return copy_object(_CONVERTER.unstructure(value))


def json_schema(cls: type[Any]) -> JsonObject:
    """Return the JSON schema of a config class, for designers and other programs.

    What attrs validators ask for beyond the types isn't in it; a docstring's text is.
    """
    reference = msgspec.json.schema(cls)
    definitions: dict[str, Any] = dict(reference["$defs"])
    if ComponentSpec.__name__ in definitions:
        definitions[ComponentSpec.__name__] = _COMPONENT_SCHEMA
    schema: JsonObject = definitions.pop(cls.__name__)
    schema["description"] = inspect.getdoc(cls) or ""
    schema["additionalProperties"] = False
    return copy_object({**schema, "$defs": definitions} if definitions else schema)


def _lines(error: BaseException, path: str, cls: type | None) -> Iterator[str]:
    if isinstance(error, ClassValidationError):
        noted, loose = error.group_exceptions()
        for inner, note in noted:
            yield from _lines(inner, f"{path}.{note.name}", note.type)
        for inner in loose:
            yield from _lines(inner, path, error.cl)
    elif isinstance(error, IterableValidationError):
        items, loose = error.group_exceptions()
        for inner, item in items:
            yield from _lines(inner, f"{path}[{item.index}]", item.type)
        for inner in loose:
            yield from _lines(inner, path, None)
    else:
        yield _line(error, path, cls)


def _line(error: BaseException, path: str, cls: type | None) -> str:
    if isinstance(error, ForbiddenExtraKeysError):
        known = [field.name for field in attrs.fields(error.cl)] if attrs.has(error.cl) else []
        keys = sorted(error.extra_fields)
        hint = nearest(keys[0], known)
        named = ", ".join(repr(key) for key in keys)
        return f"{path}: unknown key {named}{hint}; known: {', '.join(known) or 'none'}"
    if isinstance(error, DataError):
        return f"{path}: {error}"
    if isinstance(error, KeyError):
        return f"{path}: missing"
    if isinstance(error, EnvHarnessError):
        return f"{path}: {error}"
    if isinstance(error, TypeError | ValueError):
        return f"{path}: {_validator_words(error)}"
    return f"{path}: {type(error).__name__}: {error}"


def _validator_words(error: TypeError | ValueError) -> str:
    """Keep an attrs validator's own words, without the value that it repeats behind them."""
    return str(error.args[0]) if error.args else type(error).__name__


def _scalar(kind: type, word: str) -> Any:
    def check(value: object, _: type) -> object:
        if kind is float and type(value) is int:
            return float(value)
        if type(value) is not kind:
            raise TypeError(f"expected {word}, got {value!r}")
        return value

    return check


def _component(value: object, _: type) -> ComponentSpec:
    if isinstance(value, ComponentSpec):
        return value
    if isinstance(value, str):
        return ComponentSpec(value)
    if not isinstance(value, Mapping):
        raise TypeError(f'expected a table with "use", or a component\'s name, got {value!r}')
    config = copy_object(value)
    use = config.pop("use", None)
    if not isinstance(use, str):
        raise TypeError(f'"use" must name a component, got {use!r}')
    return ComponentSpec(use, config)


def _table(cls: Any, converter: Converter) -> Callable[[object, Any], Any]:
    inner = make_dict_structure_fn(cls, converter)

    def check(value: object, kind: Any) -> Any:
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise TypeError(f"expected a table, got {value!r}")
        return inner(value, kind)

    return check


def _sequence(cls: Any, converter: Converter) -> Callable[[object, Any], Any]:
    """Take lists only: cattrs would split a string into its characters."""
    make = get_origin(cls)
    items: Any = MutableSequence[get_args(cls)[0]]  # type: ignore[misc]
    inner = converter.get_structure_hook(items)

    def check(value: object, _: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise TypeError(f"expected a list, got {value!r}")
        return make(inner(value, items))

    return check


def _words(value: object, _: Any) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(item, str) for item in value.values()):
        raise TypeError(f"expected a table of texts, got {value!r}")
    return {str(key): item for key, item in value.items()}


def _tables(value: object, _: Any) -> dict[str, JsonObject]:
    if not isinstance(value, Mapping) or not all(isinstance(item, Mapping) for item in value.values()):
        raise TypeError(f"expected a table of tables, got {value!r:.80}")
    return {str(key): copy_object(item) for key, item in value.items()}


def _literal(value: object, cls: Any) -> object:
    allowed = get_args(cls)
    if value not in allowed or type(value) not in {type(item) for item in allowed}:
        raise ValueError(f"expected one of {', '.join(map(repr, allowed))}, got {value!r}")
    return value


def _is_sequence(cls: Any) -> bool:
    args = get_args(cls)
    name = getattr(get_origin(cls), "__name__", "")
    return (name == "list" and len(args) == 1) or (name == "tuple" and len(args) == 2 and args[1] is Ellipsis)


def _build() -> Converter:
    converter = Converter(forbid_extra_keys=True, detailed_validation=True)
    converter.register_structure_hook_factory(attrs.has, _table)
    converter.register_structure_hook_factory(_is_sequence, _sequence)
    converter.register_structure_hook_func(lambda cls: get_origin(cls) is _LITERAL, _literal)
    converter.register_structure_hook_func(lambda cls: cls == dict[str, str], _words)
    converter.register_structure_hook_func(lambda cls: cls == dict[str, JsonObject], _tables)
    for kind, word in ((int, "an integer"), (float, "a number"), (str, "text"), (bool, "true or false")):
        converter.register_structure_hook(kind, _scalar(kind, word))
    converter.register_structure_hook_func(lambda cls: cls == JsonObject, lambda value, _: copy_object(value))
    converter.register_structure_hook_func(lambda cls: cls == Json, lambda value, _: copy_json(value))
    converter.register_unstructure_hook_func(lambda cls: cls in (JsonObject, Json), copy_json)
    converter.register_structure_hook(ComponentSpec, _component)
    table = _table(SandboxConfig, converter)
    converter.register_structure_hook(
        SandboxConfig,
        lambda value, kind: table({"mode": value} if isinstance(value, str) else value, kind),
    )
    converter.register_unstructure_hook(ComponentSpec, ComponentSpec.as_json)
    return converter


_CONVERTER = _build()
