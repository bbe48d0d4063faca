"""The simulated learner: its habits, what skills do to them, and an evaluation that finds out which skills help."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core import Plugins, rollout
from envharness_core.campaigns.run import run_campaign
from envharness_core.config import make_config
from envharness_core.converter import structure
from envharness_core.data import Action, Observation
from envharness_core.errors import ConfigError
from envharness_core.evaluation.run import run_evaluation
from envharness_core.jsondata import JsonObject
from envharness_core.skills.bank import SkillBank
from envharness_core.skills.skill import Provenance, Skill
from envharness_core.testing.learner import HABITS, Learner, LearnerConfig
from envharness_core.toy24.bridge import Toy24

PLUGIN = {"testing": "envharness_core.testing.plugin"}
TASKS = [task.id for task in Toy24().list_tasks("train", 20)]
CLOSED: JsonObject = {"use": "closed", "tool": "combine", "where": {"op": "*"}}
FAULTS: JsonObject = {"use": "faults", "rate": 0.35}
SHOWN = {
    "submits_unverified": "That will do. stop",
    "repeats_failed": "Once more.",
    "gives_up_on_failure": "It failed, so I give up. stop",
    "never_undoes": "Onwards.",
}


def skill(title: str, when: str, advice: str) -> Skill:
    return Skill(title, when, advice, Provenance("another task"))


def texts(*advice: str) -> list[str]:
    return [skill("Advice", "When a call has just failed.", words).text for words in advice]


def played(habit: str, *layers: JsonObject, skills: tuple[str, ...] = ()) -> tuple[float, float]:
    """Return how often a habit shows, and how often its owner wins."""
    policy: JsonObject = {"use": "testing/learner", "skill": 0.8, "slips": 0.04, habit: 0.5}
    done = [
        episode
        for task in TASKS
        for episode in rollout(
            "toy24", task, policy, layers, count=3, skills=skills, plugins=Plugins({**PLUGIN})
        )
    ]
    shown = sum(any(step.text.startswith(SHOWN[habit]) for step in item.trajectory.steps) for item in done)
    return shown / len(done), sum(item.episode.success for item in done) / len(done)


def test_without_habits_it_plays_as_the_solver_does() -> None:
    settings: JsonObject = {"skill": 0.6, "patience": 12}
    for task in TASKS[:8]:
        mine, its = (
            rollout("toy24", task, {"use": name, **settings}, [FAULTS], count=4, plugins=Plugins({**PLUGIN}))
            for name in ("testing/learner", "solver")
        )
        assert [[step.action for step in item.trajectory.steps] for item in mine] == [
            [step.action for step in item.trajectory.steps] for item in its
        ]


@pytest.mark.parametrize("habit", HABITS)
def test_a_habit_shows_on_the_bare_benchmark_now_and_then_and_layers_provoke_it(habit: str) -> None:
    bare, bare_wins = played(habit)
    provoked, wins = played(habit, CLOSED)
    assert 0 < bare < 0.35
    assert provoked > 2 * bare
    assert wins < bare_wins


def test_faults_provoke_giving_up() -> None:
    bare, bare_wins = played("gives_up_on_failure")
    provoked, wins = played("gives_up_on_failure", FAULTS)
    assert provoked > 4 * bare
    assert wins < bare_wins - 0.2


ADVICE = {
    "submits_unverified": (
        "Right after `combine`, do not use `stop`: use `undo`.",
        "After `combine`, use `stop`.",
    ),
    "repeats_failed": (
        "When it was refused, do not make the very same call again.",
        "When refused, repeat the call.",
    ),
    "gives_up_on_failure": (
        "After an error, call it again rather than use `stop`.",
        "After an error, give up.",
    ),
    "never_undoes": ("Use `undo` where no way leads on.", "Do not use `undo`."),
}


@pytest.mark.parametrize("habit", HABITS)
def test_a_skill_that_addresses_a_habit_lowers_it_and_its_opposite_raises_it(habit: str) -> None:
    config = structure({habit: 0.5}, LearnerConfig, habit)
    remedy, opposite = (skill("Advice", "At work.", words).text for words in ADVICE[habit])
    assert config.rates([remedy])[habit] == pytest.approx(0.05)
    assert config.rates([opposite])[habit] == pytest.approx(0.95)
    assert config.rates([remedy, opposite]) == config.rates([])
    shown, wins = played(habit, CLOSED)
    less, more_wins = played(habit, CLOSED, skills=(remedy,))
    assert less < shown / 2
    assert more_wins >= wins


@pytest.mark.parametrize(
    ("text", "judged"),
    [
        (
            "make the very same call again rather than use `stop`",
            {"gives_up_on_failure": 1, "repeats_failed": -1},
        ),
        (
            "do not use `stop`: call the same tool with other arguments",
            {"gives_up_on_failure": 1, "repeats_failed": 1},
        ),
        ("don't give up; never repeat the call", {"gives_up_on_failure": 1, "repeats_failed": 1}),
        ("use `stop`: give up at once", {"gives_up_on_failure": -1}),
        ("season with salt", {}),
    ],
)
def test_a_skill_is_read_by_its_words(text: str, judged: dict[str, int]) -> None:
    told = {name: habit.judged(texts(text)[0]) for name, habit in HABITS.items()}
    assert {name: word for name, word in told.items() if word} == judged


@given(st.text(), st.sampled_from(sorted(HABITS)), st.floats(0, 1))
def test_whatever_a_skill_says_rates_stay_rates(text: str, habit: str, rate: float) -> None:
    config = structure({habit: rate}, LearnerConfig, habit)
    assert all(0 <= value <= 1 for value in config.rates([text, f"when a call has failed: {text}"]).values())


@given(st.integers(0, 2**63 - 1))
def test_a_seed_decides(seed: int) -> None:
    learner = Learner(LearnerConfig(slips=0.5, submits_unverified=0.5, never_undoes=0.5))
    shown = Observation("Numbers: [0] 3  [1] 8", {"numbers": ["3", "8"], "log": ["1 * 3 = 3", "4 + 4 = 8"]})
    said = []
    for _ in range(2):
        learner.start("", Toy24().tools(), seed)
        said.append([learner.act(shown) for _ in range(5)])
    assert said[0] == said[1]


def test_a_slip_names_a_number_that_isnt_there() -> None:
    learner = Learner(LearnerConfig(slips=1.0))
    learner.start("", Toy24().tools(), 1)
    reply = learner.act(Observation("", {"numbers": ["3", "8"], "log": []}))
    assert reply.actions[0].kwargs["j"] == 2


def test_what_it_cant_read_makes_it_stop() -> None:
    assert Learner().act(Observation("nothing")).actions == (Action("stop"),)


def test_a_rate_is_a_share() -> None:
    with pytest.raises(ConfigError, match="never_undoes"):
        rollout("toy24", TASKS[0], {"use": "testing/learner", "never_undoes": 2}, plugins=Plugins({**PLUGIN}))


def evaluation(**changes: Any) -> Any:
    """Return a config of a learner that gives up after failures, which the benchmark itself seldom has."""
    return make_config(
        {
            "seed": 3,
            "plugins": {**PLUGIN},
            "bridge": "toy24",
            "policy": {"use": "testing/learner", "skill": 0.95, "slips": 0.04, "gives_up_on_failure": 0.6},
            "tasks": {"limit": 12},
            "limits": {"steps": 20},
            "objective": {"use": "success_band", "low": 0.2, "high": 0.8},
            "designer": {"use": "scripted", "candidates": [[FAULTS]]},
            "skills": {"rollouts": 6, "per_task": 2},
            "evaluation": {"limit": 100, "runs": 3, **changes},
            "executor": "inline",
        }
    )


IRRELEVANT = (
    skill("Taste before serving", "When a dish is nearly done.", "Taste it, and add salt if it is flat."),
    skill("Look at the map first", "At the start of a walk.", "Find the river, and follow it downhill."),
    skill(
        "Look for pairs",
        "While you work on 24.",
        "Three times eight and four times six are the commonest ends.",
    ),
)
HARMFUL = (
    skill("Give up after a failure", "When a call has just failed.", "It is hopeless: use `stop`."),
    skill("Submit early", "Right after `combine`.", "Use `stop`, so that no number is lost."),
)


def test_an_evaluation_tells_skills_that_help_from_those_that_dont_and_those_that_harm(
    tmp_path: Path,
) -> None:
    banks = {"irrelevant": IRRELEVANT, "harmful": HARMFUL}
    for name, skills in banks.items():
        SkillBank(skills).write(tmp_path / f"{name}.jsonl")
    config = evaluation(
        conditions=["none", "original", "reshaped", *banks],
        banks={name: str(tmp_path / f"{name}.jsonl") for name in banks},
    )
    campaign: Any = run_campaign(config, tmp_path / "campaign")
    assert campaign["accepted"] >= 8
    summary: Any = run_evaluation(config, tmp_path / "evaluation", tmp_path / "campaign")
    found = {(row["condition"], row["over"]): row["finding"] for row in summary["comparisons"]}
    assert found["reshaped", "original"] == "gain"
    assert found["reshaped", "none"] == "gain"
    assert found["original", "none"] == "no evidence of gain"
    assert found["irrelevant", "none"] == "no evidence of gain"
    assert found["harmful", "none"] == "harm"
    assert found["harmful", "reshaped"] == "harm"
    learnt = {row["condition"]: row["learnt"] for row in summary["conditions"]}
    same = ("environments", "rollouts")
    assert [learnt["original"][key] for key in same] == [learnt["reshaped"][key] for key in same]
    told = [item.content for item in SkillBank.read(tmp_path / "evaluation" / "bank-reshaped.jsonl")]
    assert any("failed for a passing reason" in text and "`stop`" in text for text in told)
