"""What a designer is shown of a component: the JSON schema of its config."""

from __future__ import annotations

import json
from typing import Any

import pytest

from envharness_core.campaigns.facts import offers
from envharness_core.kinds import KINDS, LAYER
from envharness_core.plugins import Plugins


def schema(name: str) -> Any:
    return Plugins().find(LAYER, name).schema()


def test_types_defaults_and_what_is_required() -> None:
    faults = schema("faults")
    assert faults["properties"]["rate"] == {"type": "number", "default": 0.2}
    assert faults["properties"]["streak"] == {"type": "integer", "default": 2}
    assert faults["required"] == []
    assert faults["additionalProperties"] is False
    assert "the chance that a step fails" in faults["description"]
    assert schema("budget")["required"] == ["steps"]
    assert schema("closed")["properties"]["where"]["type"] == "object"


def test_nested_components_are_tables_with_use() -> None:
    definitions = schema("link")["$defs"]
    assert definitions["StackSpec"]["required"] == ["bridge"]
    assert definitions["ComponentSpec"]["required"] == ["use"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_component_of_the_core_has_one(kind: Any) -> None:
    for found in Plugins().components(kind):
        described: Any = found.schema()
        assert described["type"] == "object", found.full_name


def test_each_schema_is_strict_json_and_stays_what_it_is_when_it_is_stored() -> None:
    """A designer's model is asked again with the stored schema when a run's decisions are replayed."""
    for offer in offers(Plugins()):
        assert offer.schema is not None
        assert json.dumps(offer.schema) == json.dumps(json.loads(json.dumps(offer.schema)))
        assert repr(offer.schema) == repr(json.loads(json.dumps(offer.schema)))
