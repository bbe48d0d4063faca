"""What winners did that losers didn't: found, said well, and nothing of a solution in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envharness_core import rollout
from envharness_core.data import Action, Observation, ResetResponse, StepResponse, TaskSummary, Verdict
from envharness_core.episode import Episode
from envharness_core.jsondata import JsonObject
from envharness_core.outcome import Outcome
from envharness_core.skills.contrast import Contrast, ContrastConfig, more_often
from envharness_core.skills.extractor import Experience
from envharness_core.skills.habits import Reader, trouble_of
from envharness_core.skills.skill import Skill
from envharness_core.skills.wording import kind_of_task
from envharness_core.tools import Tool
from envharness_core.toy24.bridge import Toy24
from envharness_core.trajectory import Rollout, Step, Trajectory

Said = tuple[Action | None, str, JsonObject]


def submit() -> None:
    """End."""


def check() -> None:
    """Look whether all is well."""


def write(
    text: str, mode: Literal["append", "replace"], grade: Literal["A", "B"], at: int, *, dry: bool
) -> None:
    """Write."""


TOOLS = (Tool.of(submit), Tool.of(check), Tool.of(write))
SUBMIT: Said = (Action("submit"), "over", {"end": True})
CHECK: Said = (Action("check"), "all well", {})


def writes(text: str = "a", mode: str = "append", shown: str = "written", **info: Any) -> Said:
    kwargs: JsonObject = {"text": text, "mode": mode, "grade": "A", "at": 7, "dry": False}
    return Action("write", kwargs), f"{shown} {text}", info


def rolled(number: int, said: Sequence[Said], *, won: bool) -> Rollout:
    verdict = Verdict(success=won, score=float(won))
    episode = Episode(f"key{number}", "t", "s", number, Outcome.COMPLETED, verdict, len(said), 0.0)
    steps = []
    for action, shown, info in said:
        told = {key: value for key, value in info.items() if key != "end"}
        response = StepResponse(Observation(shown), terminated=bool(info.get("end")), info=told)
        steps.append(Step(action, "", {}, (), response, None, 0.0, 0.0))
    return Rollout(episode, Trajectory(ResetResponse(Observation("start"), "Do."), tuple(steps), ()))


def experience(
    winners: Sequence[Sequence[Said]], losers: Sequence[Sequence[Said]], instruction: str = "Fill in form 12."
) -> Experience:
    rollouts = [rolled(number, said, won=True) for number, said in enumerate(winners)]
    rollouts += [rolled(len(rollouts) + number, said, won=False) for number, said in enumerate(losers)]
    return Experience(TaskSummary("t", "train", "s"), instruction, "reshaped", (), tuple(rollouts), TOOLS)


def extracted(given: Experience, **config: Any) -> Sequence[Skill]:
    return Contrast(ContrastConfig(**config)).extract(given, 0)


def test_a_repeated_refusal_is_advised_against() -> None:
    refused = writes(shown="Not now.", blocked="Not now.")
    won = [
        [writes("c"), refused, CHECK, writes("b"), SUBMIT],
        [writes("c"), refused, writes("b"), SUBMIT],
    ] * 2
    lost = [[writes("c"), refused, refused, refused, SUBMIT]] * 4
    (skill,) = [item for item in extracted(experience(won, lost), per_task=9) if "refusal" in item.title]
    assert skill.title == "Do not repeat the call after a refusal"
    assert skill.description == "When a call has just been refused. Learnt on a task like: Fill in form N."
    assert skill.content == (
        "When a call has just been refused, do not make the very same call again: change something about it. "
        "What was refused once is refused again; the reason says what is open instead. "
        "Evidence: 0 of 4 winning rollouts did it, 4 of 4 losing ones."
    )


def test_what_winners_do_instead_is_said_where_they_agree() -> None:
    refused = writes(shown="Not now.", blocked="Not now.")
    won, lost = [refused, CHECK, writes("b"), SUBMIT], [refused, refused, refused, SUBMIT]
    titles = [item.title for item in extracted(experience([won] * 3, [lost] * 3), per_task=9)]
    assert titles[0] == "Switch to another tool after a refusal"


def test_trying_again_after_a_passing_failure_is_advised() -> None:
    down = writes(shown="Timed out, try again.", transient_error="Timed out, try again.")
    won = [writes("b"), down, writes(), SUBMIT]
    lost = [writes("b"), down, SUBMIT]
    skills = extracted(experience([won] * 3, [lost] * 4), per_task=9)
    (skill,) = [item for item in skills if "passing" in item.title]
    assert skill.title == "Repeat the call after a passing failure"
    assert skill.content == (
        "When a call has just failed for a passing reason, such as a timeout, make the very same call again rather "
        "than use `submit`. "
        "Nothing had changed in the world, so trying again costs one step and no more. "
        "Evidence: 3 of 3 winning rollouts did so, 0 of 4 losing ones."
    )
    assert skill.provenance.trajectories == tuple(f"key{number}" for number in range(7))
    assert skill.provenance.extractor == "core/contrast"


def test_a_call_that_ends_the_episode_is_a_habit_when_it_is_made_once() -> None:
    down = writes(shown="It broke.", error="It broke.")
    won = [writes("b"), down, writes("c"), down, writes("d"), CHECK, SUBMIT]
    lost = [writes("b"), down, writes("c"), down, SUBMIT]
    (skill,) = [
        item for item in extracted(experience([won] * 4, [lost] * 4), per_task=9) if "error" in item.title
    ]
    assert skill.content.startswith(
        "When a call has just failed with an error, call the same tool with other arguments rather than use `submit`. "
    )


def test_what_hardly_anybody_does_instead_isnt_named() -> None:
    refused = writes(shown="Not now.", blocked="Not now.")
    won = [[refused, CHECK, SUBMIT]] * 4
    lost = [[refused, refused, refused, writes("b"), SUBMIT], [refused, SUBMIT]] * 2
    (skill,) = [item for item in extracted(experience(won, lost), per_task=9) if "refusal" in item.title]
    assert skill.content.startswith("When a call has just been refused, use `check`. Evidence")


def test_checking_before_submitting_is_advised() -> None:
    won = [writes("a"), writes("b"), CHECK, SUBMIT]
    lost = [writes("a"), writes("b"), SUBMIT]
    titles = [item.title for item in extracted(experience([won] * 3, [lost] * 3), per_task=9)]
    assert "Use `check` before `submit`" in titles


def test_a_way_of_acting_is_named_but_neither_answers_nor_numbers() -> None:
    won, lost = [writes("x", "replace"), SUBMIT], [writes("y", "append"), SUBMIT]
    (skill, *_) = extracted(experience([won] * 3, [lost] * 3), per_task=9)
    assert skill.title == 'Use `write` with mode="replace" before `submit`'


def test_what_ended_the_episode_is_named_without_its_arguments() -> None:
    won: list[Said] = [CHECK, (*writes("x", "replace")[:2], {"end": True})]
    lost: list[Said] = [CHECK, (*writes("y", "append")[:2], {"end": True})]
    assert extracted(experience([won] * 4, [lost] * 4)) == []


TEXT = st.text("QXZ0123456789", min_size=3, max_size=6)
STEPS = st.lists(
    st.builds(
        lambda text, at, kind: (
            Action("write", {"text": text, "mode": "append", "grade": "B", "at": at, "dry": True}),
            f"{text} {at}",
            [{}, {"blocked": text}, {"malformed": text}, {"transient_error": text}, {"error": text}][kind],
        ),
        TEXT,
        st.integers(1000, 10**6),
        st.integers(0, 4),
    )
    | st.sampled_from([CHECK, SUBMIT, (None, "No call.", {"malformed": "No call."})]),
    max_size=8,
)


@given(st.lists(STEPS, max_size=4), st.lists(STEPS, max_size=4))
def test_whatever_was_done_no_free_text_number_or_answer_is_told(
    winners: list[list[Said]], losers: list[list[Said]]
) -> None:
    given_ = experience(winners, losers, "Do it.")
    skills = extracted(given_, per_task=9, confidence=0.5, margin=0.0, min_winners=1, min_losers=1)
    assert skills == extracted(given_, per_task=9, confidence=0.5, margin=0.0, min_winners=1, min_losers=1)
    assert len({item.title for item in skills}) == len(skills)
    for skill in skills:
        said = skill.text.split("Evidence: ")[0]
        assert not any(letter in said for letter in "QXZ0123456789")
        assert 'grade="' not in said


def test_without_winners_or_losers_there_is_nothing_to_compare() -> None:
    said = [writes(), SUBMIT]
    for winners, losers in ((0, 5), (5, 0), (1, 5), (5, 1)):
        assert extracted(experience([said] * winners, [[CHECK, SUBMIT]] * losers)) == []


def test_who_never_came_to_a_situation_says_nothing_of_it() -> None:
    refused = writes(shown="Not now.", blocked="Not now.")
    won = [[writes("a"), SUBMIT]] * 4
    lost = [[writes("a"), refused, refused, SUBMIT]] * 4
    assert not any("refusal" in item.title for item in extracted(experience(won, lost), per_task=9))


def test_a_long_rollout_isnt_its_own_lesson() -> None:
    won = [[writes("a"), CHECK, writes("b"), SUBMIT]] * 4
    lost = [[*[writes("a"), CHECK, writes("b")] * 5, SUBMIT]] * 4
    assert extracted(experience(won, lost), per_task=9) == []


def test_skills_are_at_most_so_many_one_a_situation_the_surest_first() -> None:
    refused = writes(shown="Not now.", blocked="Not now.")
    won = [[CHECK, refused, CHECK, writes("b", "replace"), CHECK, SUBMIT]] * 4
    lost = [[writes("b"), refused, refused, SUBMIT]] * 4
    skills = extracted(experience(won, lost), per_task=9)
    whens = [item.description for item in skills]
    assert len(whens) > 2
    assert len(set(whens)) == len(whens)
    assert extracted(experience(won, lost), per_task=2) == skills[:2]


def test_the_order_of_rollouts_changes_no_words() -> None:
    won, lost = [writes("a"), CHECK, SUBMIT], [writes("a"), SUBMIT]
    one, other = experience([won] * 3, [lost] * 3), experience([won] * 3, [lost] * 3)
    turned = Experience(
        other.task, other.instruction, other.condition, (), tuple(reversed(other.rollouts)), TOOLS
    )
    assert [item.text for item in extracted(one)] == [item.text for item in extracted(turned)]


def test_a_command_is_named_where_the_tool_takes_a_command_line() -> None:
    def do(text: str) -> None:
        """Do."""

    def run(command: str, where: str = "") -> None:
        """Run."""

    alone = Reader([], [Tool.of(do)])
    assert alone.name(Action("do", {"text": "open drawer 3"})) == "do open"
    assert alone.name(Action("do", {"text": "42"})) == "do"
    assert Reader([], [Tool.of(do), *TOOLS]).name(Action("do", {"text": "Paris is it"})) == "do"
    assert Reader([], [Tool.of(run)]).name(Action("run", {"command": "ls -l"})) == "run"
    assert alone.name(Action("do", {"malformed": "x"})) == "do"


@pytest.mark.parametrize(
    ("shown", "info", "trouble"),
    [
        ("Fine.", {}, None),
        ("Error: no such table", {}, "failed"),
        ("Nothing happens.", {}, "failed"),
        ("8 can't be divided by zero.", {"error": "8 can't be divided by zero."}, "failed"),
        ("The service is busy, try again later.", {"error": "busy"}, "passing"),
        ("Not today.", {"blocked": "Not today."}, "refused"),
        ("What?", {"malformed": "what"}, "malformed"),
        ("start", {}, "unchanged"),
        ("Found it.\nError: only further down", {}, None),
    ],
)
def test_what_was_wrong_is_read_from_what_the_agent_was_told(
    shown: str, info: JsonObject, trouble: str | None
) -> None:
    item = rolled(0, [(Action("check"), shown, info)], won=True)
    assert trouble_of(item.trajectory, 0) == trouble


@given(st.integers(0, 8), st.integers(1, 8), st.integers(0, 8), st.integers(1, 8))
def test_the_two_directions_are_each_others_rest(w: int, m: int, v: int, n: int) -> None:
    won, lost = (min(w, m), m), (min(v, n), n)
    assert more_often(won, lost) + more_often(lost, won) == pytest.approx(1.0)
    assert 0.0 <= more_often(won, lost) <= 1.0
    if won[0] < m:
        assert more_often((won[0] + 1, m), lost) > more_often(won, lost)


@pytest.mark.parametrize(
    ("instruction", "kind"),
    [
        ("Make 24 from 1, 2, 3 and 4. Then stop.", "Make N from N."),
        ("Put a mug on desk 1.\nBe quick.", "Put a mug on desk N."),
        ("Pay 3.50 by 2024-05-01 to user12", "Pay N by N to userN"),
        ("", ""),
        ("word " * 60, " ".join(["word"] * 28) + " ..."),
    ],
)
def test_a_task_is_named_by_its_kind(instruction: str, kind: str) -> None:
    assert kind_of_task(instruction) == kind


def test_real_rollouts_of_toy24_are_read() -> None:
    bridge = Toy24()
    (task,) = bridge.list_tasks("train", 1)
    layers: list[Any] = [{"use": "faults", "rate": 0.5}]
    played = rollout("toy24", task.id, {"use": "solver", "skill": 0.6}, layers, count=12)
    rollouts = tuple(Rollout(item.episode, item.trajectory) for item in played)
    given_ = Experience(task, "Make 24 from 1.", "reshaped", (), rollouts, tuple(bridge.tools()))
    for skill in extracted(given_, confidence=0.5, margin=0.0, min_winners=1, min_losers=1):
        assert skill.provenance.task == task.id
        assert set(skill.provenance.trajectories) <= {item.episode.key for item in played}
        assert 'op="' not in skill.text
