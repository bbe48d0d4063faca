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
from pathlib import Path
from typing import Any

import pytest
from attacks.catalogue import ATTACKS  # type: ignore[import-not-found]  # conftest puts fixtures on the path
from attacks.range import KEY, LOCKED, Range, typed  # type: ignore[import-not-found]

FIXTURES = Path(__file__).parent.parent / "fixtures"
NOBODY = 65534
READING_ONLY = "+dac_read_search"  # the interpreter may lie below a folder that only root may look into
NAMES = [attack.name for attack in ATTACKS]
EXPECTED = {attack.name: attack.expect for attack in ATTACKS}

EVERY_ATTACK = pytest.mark.parametrize("attack", ATTACKS, ids=NAMES)
Sightings = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def watched() -> Iterator[Range]:
    key = secrets.token_hex(16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY, key)
        with Range(LOCKED, key) as made:
            yield made


@pytest.fixture(scope="module")
def unlocked() -> Sightings:
    return played([], "unlocked")


@pytest.fixture(scope="module")
def as_nobody() -> Sightings:
    if os.geteuid() != 0:
        pytest.skip("the tests themselves run as a user without privileges")
    return played(becoming_nobody(), "locked")


def played(prefix: list[str], mode: str) -> Sightings:
    """Play all attacks in a process of its own, whose environment holds the planted key from the start."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(FIXTURES),
        "PYTHONDONTWRITEBYTECODE": "1",
        KEY: secrets.token_hex(16),
    }
    command = [*prefix, sys.executable, "-m", "attacks.play", mode]
    done = subprocess.run(
        command, env=environment, cwd="/", capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return {sighting["name"]: sighting for sighting in json.loads(done.stdout.splitlines()[-1])}


def becoming_nobody() -> list[str]:
    """Return the start of a command that runs the rest as a user without privileges."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("setpriv of util-linux isn't here, which gives up root's identity")
    plain = [setpriv, "--reuid", f"{NOBODY}", "--regid", f"{NOBODY}", "--clear-groups"]
    reading = [
        f"--inh-caps={READING_ONLY}",
        f"--ambient-caps={READING_ONLY}",
        f"--bounding-set=-all,{READING_ONLY}",
    ]
    ways = ([*plain, "--inh-caps=-all", "--bounding-set=-all"], [*plain, *reading])
    for way in ways:
        tried = subprocess.run(
            [*way, sys.executable, "-c", "import envharness_core"], cwd="/", capture_output=True, check=False
        )
        if tried.returncode == 0:
            return way
    pytest.skip(f"no other user can run this interpreter: {tried.stderr.decode()[-500:]}")


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


@pytest.mark.parametrize(
    "attack", [attack for attack in ATTACKS if attack.kind == "forgeries"], ids=lambda attack: attack.name
)
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


def test_names_are_unique() -> None:
    assert len(set(NAMES)) == len(NAMES)
