"""Skills and where they were learnt; the smallest extractor and embedder run as their docstrings print them."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from attrs import evolve

import envharness_core
from envharness_core.component import NoConfig
from envharness_core.data import Action, Observation, ResetResponse, StepResponse, TaskSummary, Verdict
from envharness_core.episode import Episode
from envharness_core.jsondata import JsonObject
from envharness_core.kinds import EXTRACTOR
from envharness_core.outcome import Outcome
from envharness_core.plugins import Plugins
from envharness_core.skills.bank import SkillBank
from envharness_core.skills.embedder import Embedder
from envharness_core.skills.extractor import Experience, Extractor
from envharness_core.skills.skill import Provenance, Skill
from envharness_core.spec import ComponentSpec, layers_digest
from envharness_core.trajectory import Rollout, Step, Trajectory


def example(thing: object, name: str) -> Any:
    doc = textwrap.dedent(f"    {thing.__doc__}")
    lines = doc[doc.index("::\n") + 3 :].splitlines()
    code = textwrap.dedent("\n".join(line for line in lines if line.startswith("    ") or not line))
    scope = {public: getattr(envharness_core, public) for public in envharness_core.__all__}
    exec(code, scope)
    return scope[name]


def rolled(key: str, *, won: bool) -> Rollout:
    episode = Episode(
        key, "t", "baseline", 0, Outcome.COMPLETED, Verdict(success=won, score=float(won)), 1, 0.0
    )
    start = ResetResponse(Observation("here"), "Do it.")
    step = Step(Action("look"), "", {}, (), StepResponse(Observation("seen")), None, 0.0, 0.0)
    return Rollout(episode, Trajectory(start, (step,), ()))


def experience(*layers: ComponentSpec) -> Experience:
    rollouts = (rolled("lost", won=False), rolled("won", won=True))
    return Experience(TaskSummary("t", "train", "Look."), "Do it.", "reshaped", layers, rollouts)


SKILL = Skill("  Look\nfirst ", "At  the\nstart.", " Look.\nThen act. ", Provenance("t"))


def test_a_skill_is_tidied_and_told_as_title_when_what() -> None:
    assert SKILL.text == "Look first\nWhen: At the start.\nWhat to do: Look.\nThen act."


@pytest.mark.parametrize("field", ["title", "description", "content"])
@pytest.mark.parametrize("value", ["", "  \n", None, 3, "\ud800"])
def test_a_skill_that_says_nothing_is_refused_by_field(field: str, value: Any) -> None:
    with pytest.raises(Exception, match=field):
        evolve(SKILL, **{field: value})


def test_the_id_is_the_content_and_where_it_was_learnt() -> None:
    assert SKILL.id == evolve(SKILL, title="Look first").id
    assert (
        len({SKILL.id, evolve(SKILL, content="Act.").id, evolve(SKILL, provenance=Provenance("u")).id}) == 3
    )


def test_provenance_names_the_task_the_stack_and_the_episodes() -> None:
    layer = ComponentSpec("core/budget", {"steps": 3})
    given = experience(layer)
    origin = given.provenance("me", given.winners)
    assert origin == Provenance("t", "reshaped", layers_digest((layer,)), ("won",), "me")
    assert experience().provenance("me") == Provenance("t", "reshaped", "", ("lost", "won"), "me")


def test_a_links_second_task_is_learnt_from_too() -> None:
    inner: JsonObject = {"bridge": "toy24", "task": "inside", "layers": []}
    second: JsonObject = {"bridge": "toy24", "task": "second", "layers": [{"use": "link", "next": inner}]}
    origin = experience(ComponentSpec("core/link", {"next": second})).provenance("me")
    assert origin.linked == ("second", "inside")
    assert [origin.came_from(task) for task in ("t", "second", "inside", "other")] == [
        True,
        True,
        True,
        False,
    ]


def test_the_smallest_extractor_and_embedder_work_together() -> None:
    extractor: Extractor[NoConfig] = example(Extractor, "DoAsBefore")(NoConfig())
    embedder: Embedder[NoConfig] = example(Embedder, "CountsLetters")(NoConfig())
    (skill,) = extractor.extract(experience(), 0)
    assert (skill.content, skill.provenance.trajectories) == ("look()", ("won",))
    bank = SkillBank()
    assert bank.add([skill], embedder).skills == (skill,)
    (match,) = bank.retrieve("look look", 3, exclude_task="other", embedder=embedder)
    assert match.skill == skill
    assert match.score > 0.3
    assert not extractor.waits


def test_the_core_registers_its_extractor() -> None:
    made = Plugins().create(EXTRACTOR, ComponentSpec("contrast"), "extractor")
    assert made.extract(experience(), 0) == []
