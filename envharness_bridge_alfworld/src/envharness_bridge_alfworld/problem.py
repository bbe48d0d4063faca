"""The PDDL text of a household, for ALFWorld's domain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envharness_bridge_alfworld.household import Household, Thing
from envharness_bridge_alfworld.scenes import LAMP, SORTS

_AGENT, _START = "agent1", "loc_bar_0"
_PLACES_IN_DOMAIN = {"Fridge", "Microwave", "Sink", "SinkBasin"}
_THINGS_IN_DOMAIN = {"ButterKnife", "Knife"}
"""Types that the domain's actions name: a problem without them doesn't parse."""

_ABLE = {"clean": "cleanable", "heat": "heatable", "cool": "coolable", "slice": "sliceable"}
_TREATED = {"clean": "isClean", "heat": "isHot", "cool": "isCool"}


def problem_text(household: Household, name: str) -> str:
    """Write a household down as a planning problem.

    Args:
        household: what to write down.
        name: the problem's name.
    """
    parts = (
        f"(problem {name})",
        "(:domain alfred)",
        _block(":objects", _objects(household)),
        _block(":init", _facts(household)),
        f"(:goal {_goal(household)})",
        "(:metric minimize (total-cost))",
    )
    return "(define {})\n".format("\n".join(parts))


def _block(head: str, lines: Iterable[str]) -> str:
    return "\n    ".join([f"({head}", *lines]) + "\n)"


def _objects(household: Household) -> Iterator[str]:
    receptacles, things = household.scene.receptacles, household.things
    yield f"{_AGENT} - agent"
    yield from (f"loc_bar_{number} - location" for number in range(len(receptacles) + 1))
    yield from (f"{receptacle.id} - receptacle" for receptacle in receptacles)
    yield from (f"{thing.id} - object" for thing in things)
    yield from (
        f"{kind}Type - rtype" for kind in sorted({place.type for place in receptacles} | _PLACES_IN_DOMAIN)
    )
    yield from (
        f"{kind}Type - otype" for kind in sorted({thing.type for thing in things} | _THINGS_IN_DOMAIN)
    )


def _facts(household: Household) -> Iterator[str]:
    yield "(= (total-cost) 0)"
    yield f"(atLocation {_AGENT} {_START})"
    where = {}
    for number, receptacle in enumerate(household.scene.receptacles, 1):
        where[receptacle.id] = f"loc_bar_{number}"
        yield f"(receptacleAtLocation {receptacle.id} loc_bar_{number})"
        yield f"(receptacleType {receptacle.id} {receptacle.type}Type)"
        if receptacle.openable:
            yield f"(openable {receptacle.id})"
            if receptacle.opened:
                yield f"(opened {receptacle.id})"
    for thing in household.things:
        yield f"(inReceptacle {thing.id} {thing.place.id})"
        yield f"(objectAtLocation {thing.id} {where[thing.place.id]})"
        yield from _traits(thing)
    yield from _fits(household)


def _traits(thing: Thing) -> Iterator[str]:
    yield f"(objectType {thing.id} {thing.type}Type)"
    yield f"({'toggleable' if thing.type == LAMP else 'pickupable'} {thing.id})"
    yield from (f"({_ABLE[verb]} {thing.id})" for verb in sorted(SORTS[thing.type].can))


def _fits(household: Household) -> Iterator[str]:
    kinds = sorted({thing.type for thing in household.things} - {LAMP})
    for place in sorted({receptacle.type for receptacle in household.scene.receptacles}):
        yield from (f"(canContain {place}Type {kind}Type)" for kind in kinds if place in SORTS[kind].places)


def _goal(household: Household) -> str:
    target, place, goal = f"{household.target}Type", f"{household.place}Type", household.goal
    if goal.lamp:
        return (
            "(exists (?a - agent ?l - location ?r - receptacle ?light - object ?o - object) "
            f"(and (objectType ?light {place}) (toggleable ?light) (isToggled ?light) (inReceptacle ?light ?r) "
            f"(receptacleAtLocation ?r ?l) (atLocation ?a ?l) (objectType ?o {target}) (holds ?a ?o)))"
        )
    if goal.count == 2:
        return (
            f"(exists (?o - object ?p - object ?r - receptacle) (and (objectType ?o {target}) (objectType ?p {target}) "
            f"(not (= ?o ?p)) (receptacleType ?r {place}) (inReceptacle ?o ?r) (inReceptacle ?p ?r)))"
        )
    treated = f"({_TREATED[goal.treatment[0]]} ?o) " if goal.treatment else ""
    return (
        f"(exists (?o - object ?r - receptacle) (and (objectType ?o {target}) (receptacleType ?r {place}) "
        f"{treated}(inReceptacle ?o ?r)))"
    )
