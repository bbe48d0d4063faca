"""Attacks: whatever rules try, nothing happens outside, the outcome has a name, and the verdict is the bridge's own."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from attacks.attack import Attack  # type: ignore[import-not-found]  # conftest puts fixtures on the path
from attacks.catalogue import ATTACKS  # type: ignore[import-not-found]
from attacks.range import HARMLESS, KEY, LOCKED, Range, typed  # type: ignore[import-not-found]
from attacks.watching import descendants  # type: ignore[import-not-found]
from attrs import evolve

from envharness_core.data import Observation, StepResponse, Verdict
from envharness_core.errors import RulesError

FIXTURES = Path(__file__).parent.parent / "fixtures"
NOBODY = 65534
EARLY = [
    attack
    for attack in ATTACKS
    if re.match(r"rules_error: (source|__init__) ", attack.expect) or attack.name.endswith("/while_loaded")
]
NAMES = [attack.name for attack in ATTACKS]
FORGERIES = [attack for attack in ATTACKS if attack.kind == "forgeries"]

EVERY_ATTACK = pytest.mark.parametrize("attack", ATTACKS, ids=NAMES)
Sightings = dict[str, dict[str, Any]]
Way = tuple[list[str], dict[str, Any]]
"""What comes before a command, and the identity that it gets."""
OWN: Way = ([], {})


@pytest.fixture(scope="module")
def watched() -> Iterator[Range]:
    key = secrets.token_hex(16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY, key)
        with Range(LOCKED, key) as made:
            yield made


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[dict[str, Future[Sightings]]]:
    """Play all attacks in two other processes at once: without the lockdown, and, for root, as nobody."""
    with ThreadPoolExecutor(2) as pool:
        runs = {"unlocked": pool.submit(played, OWN, "unlocked")}
        if os.geteuid() == 0:
            runs["nobody"] = pool.submit(played, becoming_nobody(), "locked")
        yield runs


@pytest.fixture(scope="module")
def unlocked(elsewhere: dict[str, Future[Sightings]]) -> Sightings:
    return elsewhere["unlocked"].result()


@pytest.fixture(scope="module")
def as_nobody(elsewhere: dict[str, Future[Sightings]]) -> Sightings:
    if "nobody" not in elsewhere:
        pytest.skip("the tests themselves run as a user without privileges")
    return elsewhere["nobody"].result()


def played(way: Way | str, mode: str) -> Sightings:
    """Play all attacks in a process of its own, whose environment holds the planted key from the start."""
    if isinstance(way, str):
        pytest.skip(way)
    done = run(way, "-m", "attacks.play", mode)
    assert done.returncode == 0, done.stderr[-4000:]
    return {sighting["name"]: sighting for sighting in json.loads(done.stdout.splitlines()[-1])}


def run(way: Way, *arguments: str) -> subprocess.CompletedProcess[str]:
    prefix, identity = way
    planted = {"PYTHONPATH": str(FIXTURES), "PYTHONDONTWRITEBYTECODE": "1", KEY: secrets.token_hex(16)}
    return subprocess.run(
        [*prefix, sys.executable, *arguments],
        env={**os.environ, **planted},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        **identity,
    )


def becoming_nobody() -> Way | str:
    """Return how to run this interpreter as a user without privileges, with as little as that takes, or why not."""
    setpriv = shutil.which("setpriv") or "setpriv"
    user = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    reading = "+dac_read_search"  # the interpreter may lie below a folder that only root may look into
    capabilities = [f"--inh-caps={reading}", f"--ambient-caps={reading}", f"--bounding-set=-all,{reading}"]
    ways: list[Way] = [
        ([], {"user": NOBODY, "group": NOBODY, "extra_groups": []}),
        ([setpriv, *user, *capabilities], {}),
    ]
    problems = []
    for way in ways:
        try:
            tried = run(way, "-c", "import envharness_core, attacks.catalogue")
        except OSError as error:
            problems.append(str(error))
        else:
            if tried.returncode == 0:
                return way
            problems.append(tried.stderr.strip()[-300:])
    return f"no other user can run this interpreter: {'; '.join(problems)}"


def contained(sighting: dict[str, Any], expect: str) -> None:
    """Require that an attack did no harm, ended in a way that has a name, and spoilt nothing that came after it."""
    assert list(sighting["harm"]) == []
    assert re.match(expect, f"{sighting['outcome']}: {sighting['error']}")
    assert sighting["after"] == "completed: "


@EVERY_ATTACK
def test_an_attack_is_contained(watched: Range, attack: Any) -> None:
    sighting = watched.attempt(attack)
    assert typed(sighting)
    contained(
        {name: getattr(sighting, name) for name in ("harm", "outcome", "error", "after")}, attack.expect
    )


@pytest.mark.parametrize("attack", FORGERIES, ids=lambda attack: attack.name)
def test_a_verdict_of_toy24_cannot_be_forged_either(watched: Range, attack: Any) -> None:
    sighting = watched.attempt(attack, "toy24")
    assert (sighting.harm, sighting.after) == ((), "completed: ")
    assert typed(sighting)


@pytest.mark.slow
@EVERY_ATTACK
def test_an_attack_is_contained_where_the_runner_has_no_privileges(as_nobody: Sightings, attack: Any) -> None:
    contained(as_nobody[attack.name], attack.expect)


@pytest.mark.slow
def test_without_the_lockdown_the_same_attacks_do_harm(unlocked: Sightings) -> None:
    assert list(unlocked) == NAMES
    harmful = [name for name, sighting in unlocked.items() if sighting["harm"]]
    assert len(harmful) >= len(ATTACKS) / 3


@pytest.mark.slow
def test_each_detector_notices_something_without_the_lockdown(unlocked: Sightings) -> None:
    seen = Counter(harm for sighting in unlocked.values() for harm in sighting["harm"])
    expected = {
        "breached",
        "connection",
        "file",
        "key",
        "marker",
        "secret",
        "signal",
        "stray",
        "victim",
        "zygote",
    }
    assert set(seen) == expected


@pytest.mark.parametrize("attack", EARLY, ids=lambda attack: attack.name)
def test_a_candidate_that_attacks_while_it_is_loaded_is_rejected(watched: Range, attack: Any) -> None:
    with watched.stack(attack) as stack, pytest.raises(RulesError):
        stack.check()
    assert list(watched.noticed()) == []


def test_loading_a_checkpoint_runs_nothing(watched: Range) -> None:
    source = "import dataclasses\nKEYS = dict(dataclasses.sys.modules['os'].environ)\n" + HARMLESS
    curious = Attack("curious", "", source, "")
    with watched.stack(curious) as stack:
        stack.reset(0, {"task": "three"})
        state = stack.save_state()
    with watched.stack(curious) as stack:
        before = descendants(os.getpid())
        stack.load_state(state)
        assert descendants(os.getpid()) == before


def test_a_forged_record_is_noticed(watched: Range) -> None:
    spec, record = watched.harmless()
    assert watched.forgeries(spec, record) == []
    lost = evolve(record, episode=evolve(record.episode, verdict=Verdict(success=False, score=0.0)))
    assert watched.forgeries(spec, lost) == ["verdict"]
    start, steps, events = msgspec.msgpack.decode(record.blob)
    claim = StepResponse(Observation("won"), reward=99.0, terminated=True)
    steps[0][4] = msgspec.to_builtins(claim)
    forged = evolve(record, blob=msgspec.msgpack.encode((start, steps, events)))
    assert watched.forgeries(spec, forged) == ["reward", "terminated"]


def test_names_are_unique() -> None:
    assert len(set(NAMES)) == len(NAMES)
