"""What the designer is told: everything that it needs to write a layer, and what was made of earlier ones."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from attrs import evolve
from canned_designer import FAULTS, called, designer, evidence, proposed  # type: ignore[import-not-found]
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from envharness_core import (
    Action,
    Attempt,
    Candidate,
    ComponentSpec,
    Decision,
    Diagnosis,
    Judgement,
    Offer,
    stack,
)
from envharness_core.designer import TaskHistory
from envharness_core.sandbox.dialect import IN_SCOPE, MODULES
from envharness_llm.designing.fitting import problem_with
from envharness_llm.designing.offering import layers_schema
from envharness_llm.designing.texts import PLACEHOLDERS

FOUND = Diagnosis("It overlooks division.", "3 of 5", "harden", boundary="sums", reliance="undo")
SOURCE = "class _Rules(Rules):\n    def filter_action(self, action, env_state):\n        return action"
RULES = ComponentSpec("core/rules", {"source": SOURCE})
BROKEN = "a layer broke: filter_action (raised, line 3): KeyError: 'op' [line 3, in filter_action: action.kwargs['op']]"


LOST = evidence(0.6, 5, "4-4-10-10")


def shown(stage: Any = "propose", changes: Any = None, **config: Any) -> str:
    made, _, _ = designer(**config)
    return str(made.show(evolve(evidence(), **(changes or {})), stage))


def told(*history: Attempt, **config: Any) -> str:
    made, model, _ = designer(called("give_up", reason="no"), **config)
    made.propose(LOST, FOUND, history)
    return str(model.requests[0].messages[1].text)


def judged(decision: Decision, **changes: Any) -> Attempt:
    judgement = Judgement(decision, "scaffold", 0.1, "1 of 8: 0.03 likely in [0.4, 0.6]")
    episodes = LOST.baseline[:3]
    return Attempt(Candidate((RULES,), "It strikes."), episodes, (), judgement, decision, **changes)


def test_the_example_of_rules_runs_as_it_is_printed() -> None:
    (source,) = re.findall(r"```python\n(.*?)```", shown(), re.DOTALL)
    with stack("toy24", [{"use": "rules", "source": source}]) as env:
        env.check()
        seen = []
        for seed in range(5):
            env.reset(seed=seed, options={"task": "1-4-8-11"})
            seen += [env.step(Action("undo")) for _ in range(4)]
    assert str(seen[2].info["blocked"]).startswith("Refused: the same call three times")
    late = [response for response in seen if response.observation.text == "Done, the display follows."]
    assert 0 < len(late) < len(seen)


def test_the_prompt_names_every_tool_field_layer_helper_and_module() -> None:
    text, given = shown(), evidence()
    for offer in given.layers:
        assert f"## {offer.type}\n{offer.summary}" in text
        assert all(f'"{key}"' in text for key in offer.schema["properties"])
    assert all(f"- `{tool.name}`: {tool.description}" in text for tool in given.tools)
    assert all(f"- `{name}" in text for name in IN_SCOPE)
    assert ", ".join(MODULES) in text
    assert given.env_state_schema in text
    assert given.instruction in text
    assert "at most 50 actions" in text


def test_what_the_bridge_says_of_its_world_is_a_section_of_its_own() -> None:
    notes = "It refuses by silence.\nNothing can be undone."
    for stage in ("diagnose", "propose"):
        assert f"# What to know of this world\n\n{notes}\n\n# " in shown(stage, {"designer_notes": notes})
        assert "What to know of this world" not in shown(stage, {"designer_notes": ""})


def test_nothing_is_left_to_fill_in() -> None:
    for stage in ("diagnose", "propose"):
        assert "${" not in shown(stage)
        assert "None" not in shown(stage)


def test_an_example_of_layers_is_json_that_fits() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", shown(), re.DOTALL)
    schema = layers_schema(evidence().layers)
    assert problem_with(json.loads(example)["layers"], schema, "layers") == ""


def test_where_no_rules_are_on_offer_they_arent_explained() -> None:
    few = tuple(offer for offer in evidence().layers if offer.type != "core/rules")
    assert "class _Rules" not in shown(changes={"layers": few})


def test_a_layer_that_cant_be_described_is_offered_all_the_same() -> None:
    text = shown(changes={"layers": (Offer("odd/odd", "is odd", None),)})
    assert "## odd/odd\nis odd" in text


def test_a_band_says_where_the_unchanged_task_stands() -> None:
    wins = sum(episode.success for episode in evidence().baseline)
    assert "aim well inside 0.4 to 0.6 and not at an edge" in shown("diagnose")
    assert f"The unchanged task, with {wins} of 5, seems to be" in shown("diagnose")
    assert "At most 40 more rollouts" in shown("diagnose")
    assert "more rollouts may be played" not in shown("diagnose", {"budget": 10**9})


def test_without_a_band_the_objectives_words_are_all() -> None:
    text = shown("diagnose", {"band": None, "objective": "successes that take 5 to 9 steps"})
    assert "Successes that take 5 to 9 steps." in text
    assert "No success rate is prescribed" in text
    assert "aim well inside" not in text


def test_a_weakness_on_demand_is_told_beside_the_objective() -> None:
    text = shown("diagnose", weakness="It submits without looking.")
    assert "> It submits without looking." in text
    assert "aim well inside" in text
    assert "on demand" not in shown("diagnose")


@pytest.mark.parametrize(
    ("attempt", "says_what"),
    [
        (judged(Decision.REFINE), "Keep what works and change the magnitude"),
        (judged(Decision.REFINE), "By its numbers it has to become easier."),
        (judged(Decision.REJECT), "Start over with another idea"),
        (Attempt(Candidate((RULES,)), rejected=BROKEN), "Mend what is named there"),
        (judged(Decision.REJECT, rejected=BROKEN), "Mend what is named there"),
    ],
)
def test_an_attempt_is_shown_in_full_with_what_was_said_of_it(attempt: Attempt, says_what: str) -> None:
    text = told(attempt)
    assert f"```python\n{SOURCE}\n```" in text
    assert says_what in text
    assert attempt.candidate.rationale in text
    if attempt.rejected:
        assert f"Given up: {BROKEN}" in text
    if attempt.episodes:
        assert "The gate: " in text
        assert "1 of 8: 0.03 likely in [0.4, 0.6]" in text
        assert "# Rollouts of attempt 1" in text


def test_a_review_that_was_stricter_is_told() -> None:
    judgement = Judgement(Decision.ACCEPT, "leave", 0.9, "4 of 8")
    attempt = evolve(judged(Decision.REFINE), judgement=judgement)
    assert "The designer's review made that refine." in told(attempt)


def test_rollouts_of_the_latest_attempt_share_the_room() -> None:
    text = told(judged(Decision.REFINE), evidence_tokens=2000)
    baseline, latest = text.split("# Its rollouts, step by step")[1].split("# The diagnosis")
    assert len(baseline) < 1000 * 4 + 1000
    assert len(latest.split("# Rollouts of attempt 1")[1].split("# Your turn")[0]) < 1000 * 4 + 1500


def test_the_diagnosis_is_told() -> None:
    assert (
        "- Flaw: It overlooks division.\n- Evidence: 3 of 5\n- Boundary: sums\n- Reliance: undo\n" in told()
    )


def test_demonstrations_are_shown_within_the_room() -> None:
    ways = evidence(1.0, 2, "3-3-8-8")
    both = {episode.key: ways.trajectory(episode) for episode in ways.baseline}
    given = evidence()
    text = shown(
        "diagnose",
        {
            "demonstrations": ways.baseline,
            "trajectory": lambda episode: both.get(episode.key) or given.trajectory(episode),
        },
    )
    assert "# Rollouts of a demonstrator, another player" in text


def test_earlier_tasks_are_told_in_a_few_lines() -> None:
    accepted = Attempt(
        Candidate((ComponentSpec("core/faults", {"rate": 0.2}),), "Faults ask for a second look."),
        judgement=Judgement(Decision.ACCEPT, "leave", 0.9, "4 of 8: 0.7 likely"),
        decision=Decision.ACCEPT,
    )
    history = TaskHistory(evidence().task, evidence().baseline, (judged(Decision.REFINE), accepted), FOUND)
    text = shown("diagnose", {"earlier": (history,)})
    assert "Flaw: It overlooks division." in text
    assert 'Accepted: {"use": "core/faults", "rate": 0.2} (4 of 8: 0.7 likely). Faults ask' in text
    assert "Attempts that failed: 1, the latest: core/rules: 1 of 8" in text
    assert SOURCE not in text


def test_a_config_replaces_prompts_by_name() -> None:
    for name in PLACEHOLDERS:
        stage = "diagnose" if name in ("diagnose", "autonomous") else "propose"
        changes = {"band": None} if name == "autonomous" else {}
        config = {"weakness": "x"} if name == "weakness" else {}
        text = shown(stage, changes, prompts={name: "Own words."}, **config)
        assert ("Own words." in text) == (name != "review")
        assert "Own words." not in shown(stage, changes, **config)


def test_a_review_reads_the_candidate_and_its_rollouts() -> None:
    made, model, _ = designer(called("review", reason="So.", word="accept"), review=True)
    made.review(LOST, FOUND, (), judged(Decision.ACCEPT))
    text = model.requests[0].messages[1].text
    assert SOURCE in text
    assert "# Rollouts of the candidate" in text


def test_a_prompt_repeats_itself() -> None:
    assert shown() == shown()
    made, model, _ = designer(proposed(FAULTS))
    made.propose(evidence(), FOUND, ())
    made.propose(evidence(), FOUND, ())
    assert model.requests[0] == model.requests[1]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.5, 1.5]) | st.sampled_from(["a", "harden"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["rate", "steps", "use", "name", "kwargs", "actions", "x"]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
SCHEMAS: tuple[Any, ...] = (
    *(offer.schema for offer in evidence().layers),
    {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]},
    {"type": ["string", "null"]},
    {"enum": ["a", 1]},
)


@given(st.sampled_from(SCHEMAS), VALUES)
def test_data_fits_where_a_whole_validator_says_so(schema: Any, value: Any) -> None:
    assert (problem_with(value, schema, "value") == "") == Draft202012Validator(schema).is_valid(value)
