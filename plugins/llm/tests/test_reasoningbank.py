"""The model extractor: what it shows, asks and asks again, and that what it returns is whole, distinct and placed."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from attrs import evolve
from canned_policy import USED, CannedModel, calls, says  # type: ignore[import-not-found]
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from envharness_core import (
    Action,
    ComponentSpec,
    Episode,
    Experience,
    Observation,
    Outcome,
    Plugins,
    ResetResponse,
    Skill,
    StepResponse,
    TaskSummary,
    Trajectory,
    Verdict,
    rollout,
)
from envharness_core.converter import structure
from envharness_core.errors import AccessError, ConfigError, PluginError, ProviderError
from envharness_core.jsondata import JsonObject
from envharness_core.kinds import EXTRACTOR
from envharness_core.session import Session
from envharness_core.testing import Fault, ModelServer, Said, script
from envharness_core.toy24.bridge import Toy24
from envharness_core.trajectory import Rollout, Step
from envharness_llm.designing.pages import TOKEN
from envharness_llm.distilling.brief import Brief
from envharness_llm.distilling.modes import MODES, rollouts_for
from envharness_llm.distilling.texts import PLACEHOLDERS, texts_of
from envharness_llm.messages import Answer
from envharness_llm.reasoningbank import NAME, ReasoningBank, ReasoningBankConfig

FAULTS = ComponentSpec("core/faults", {"rate": 0.2, "text": "The service is busy."})


def rolled(number: int, does: str, *, won: bool, shows: str = "It is so.") -> Rollout:
    """Return a rollout; ``does`` names a tool by a letter a step."""
    episode = Episode(
        f"key{number}", "t", "s", number, Outcome.COMPLETED, Verdict(won, float(won)), len(does), 1.0
    )
    steps = [
        Step(Action(name), "", {}, ((0, 0),), StepResponse(Observation(f"{shows} {name}")), None, 0.0, 0.0)
        for name in does
    ]
    return Rollout(episode, Trajectory(ResetResponse(Observation("begin"), "Do."), tuple(steps), ((),)))


def experience(won: Sequence[str] = (), lost: Sequence[str] = (), **more: Any) -> Experience:
    rollouts = [rolled(number, does, won=True) for number, does in enumerate(won)]
    rollouts += [rolled(len(won) + number, does, won=False) for number, does in enumerate(lost)]
    told: dict[str, Any] = {"condition": "original", "layers": ()} | more
    return Experience(TaskSummary("t", "train", "s"), "Fill in the form.", rollouts=tuple(rollouts), **told)


MIXED = experience(["abc", "abd"], ["aec", "abe"])


def item(title: str, content: str = "") -> JsonObject:
    return {"title": title, "description": f"When {title}.", "content": content or f"Do {title}."}


def remember(*items: JsonObject) -> Answer:
    answer: Answer = calls(("remember", json.dumps({"items": [*items]})))
    return answer


def made(*answers: Answer, fails: str = "", **config: Any) -> tuple[ReasoningBank, CannedModel, list[Any]]:
    model, charged = CannedModel(answers, fails), list[Any]()
    extractor = ReasoningBank(ReasoningBankConfig("canned/model", **config), model)
    extractor.attach(Session(charge=lambda role, usage: charged.append((role, usage))))
    return extractor, model, charged


def titles(skills: Sequence[Skill]) -> list[str]:
    return [skill.title for skill in skills]


def modes_of(given: Experience) -> list[str]:
    return [mode for mode in MODES if rollouts_for(mode, given)]


@pytest.mark.parametrize(
    ("given", "modes"),
    [
        (experience(), []),
        (experience(["a"]), ["success"]),
        (experience(lost=["a", "b"]), ["failure"]),
        (experience(["a"], ["b"]), ["failure", "success", "pair"]),
        (MIXED, ["contrast", "failure", "success", "pair"]),
    ],
)
def test_there_is_a_call_for_each_mode_that_has_rollouts_to_read(given: Experience, modes: list[str]) -> None:
    assert modes_of(given) == modes
    extractor, model, charged = made(remember())
    assert list(extractor.extract(given, 3)) == []
    assert len(model.requests) == len(charged) == len(modes)
    assert charged == [("extractor", USED)] * len(modes)


def test_each_mode_reads_its_own_rollouts_and_a_pair_is_of_those_that_part_latest() -> None:
    read = {mode: [rolled.episode.index for rolled in rollouts_for(mode, MIXED)] for mode in MODES}
    assert read == {"contrast": [0, 1, 2, 3], "failure": [2, 3], "success": [0, 1], "pair": [0, 3]}
    extractor, model, _ = made(*(remember(item(f"word{n}")) for n in range(4)))
    skills = extractor.extract(MIXED, 3)
    for request, skill, mode in zip(model.requests, skills, MODES, strict=True):
        heads = re.findall(r"^## Rollout (\d): (\w+)", request.messages[1].text, re.MULTILINE)
        assert sorted(int(number) for number, _ in heads) == read[mode]
        assert [int(key[3:]) for key in skill.provenance.trajectories] == read[mode]
        assert all((word == "success") is (int(number) < 2) for number, word in heads)


def test_the_first_skills_are_of_different_kinds_and_are_placed() -> None:
    answers = [remember(*(item(f"mode{mode} word{word}") for word in range(3))) for mode in range(4)]
    extractor, _, _ = made(*answers)
    given = evolve(MIXED, condition="reshaped", layers=(FAULTS,))
    skills = extractor.extract(given, 3)
    assert titles(skills)[:5] == ["mode0 word0", "mode1 word0", "mode2 word0", "mode3 word0", "mode0 word1"]
    assert len(skills) == 12
    for skill in skills:
        shown = [rolled for rolled in given.rollouts if rolled.episode.key in skill.provenance.trajectories]
        assert skill.provenance == given.provenance(NAME, shown)


@pytest.mark.usefixtures("quiet_again")
def test_repetitions_within_and_between_modes_and_items_too_many_are_dropped_and_said() -> None:
    same = item("Check before the end", "Read what you wrote once more before you end the task.")
    again = item("Look again", "Read what you wrote once more before you end the task, always.")
    extractor, _, _ = made(
        remember(same, again, item("undo"), item("ask"), item("wait")),
        remember(again, item("stop")),
        remember(),
        remember(),
    )
    with capture_logs() as logs:
        skills = extractor.extract(MIXED, 3)
    assert titles(skills) == ["Check before the end", "undo", "stop", "ask"]
    reasons = [entry["reason"] for entry in logs if entry["event"] == "extractor_item_dropped"]
    assert len(reasons) == 3
    assert sum("says the same as" in reason for reason in reasons) == 2
    assert sum("one more than the 3" in reason for reason in reasons) == 1


UNUSABLE = {
    "nothing": (says(""), "holds no items"),
    "a refusal": (says("I can't help with that."), "holds no items"),
    "half an item": (remember({"title": "A"}), "has no description and no content"),
    "filtered": (evolve(remember(item("a")), finish="filtered"), "content filter"),
    "reasoning": (says("<think>" + json.dumps([item("a")])), "isn't closed"),
    "broken": (calls(("remember", '{"items": [')), "holds no items"),
}
ONE: Any = {"modes": ("success",)}


@pytest.mark.parametrize("name", UNUSABLE)
def test_what_cant_be_used_is_asked_again_with_the_reason(name: str) -> None:
    answer, says_what = UNUSABLE[name]
    extractor, model, charged = made(answer, remember(item("a")), **ONE)
    assert titles(extractor.extract(MIXED, 3)) == ["a"]
    first, second = model.requests
    assert (first.number, second.number, first.seed) == (0, 1, second.seed)
    assert second.messages[: len(first.messages)] == first.messages
    assert says_what in second.messages[-1].text
    assert second.messages[-1].role == "user"
    assert len(charged) == 2


@pytest.mark.usefixtures("quiet_again")
@pytest.mark.parametrize("name", UNUSABLE)
def test_where_nothing_can_be_used_nothing_is_learnt_and_it_is_said(name: str) -> None:
    answer, says_what = UNUSABLE[name]
    extractor, model, charged = made(answer, reasks=3, **ONE)
    with capture_logs() as logs:
        assert list(extractor.extract(MIXED, 3)) == []
    assert [request.number for request in model.requests] == [0, 1, 2, 3]
    assert len(charged) == 4
    (warning,) = [entry for entry in logs if entry["log_level"] == "warning"]
    assert warning["event"] == "extractor_learnt_nothing"
    assert says_what in warning["problem"]


def test_a_mode_without_a_usable_answer_costs_the_others_nothing() -> None:
    extractor, _, _ = made(says("No."), remember(item("a")), reasks=0, modes=("failure", "success"))
    assert titles(extractor.extract(MIXED, 3)) == ["a"]


@pytest.mark.usefixtures("quiet_again")
def test_an_answer_that_was_cut_off_counts_for_nothing_and_is_asked_for_once_more() -> None:
    cut = evolve(remember(item("a"), item("b")), finish="length")
    extractor, model, _ = made(cut, remember(item("c")), **ONE)
    assert titles(extractor.extract(MIXED, 3)) == ["c"]
    assert "write fewer" in model.requests[1].messages[-1].text
    assert len(model.requests[1].messages) == len(model.requests[0].messages) + 1  # nothing of it is repeated
    extractor, model, charged = made(cut, reasks=5, **ONE)
    with capture_logs() as logs:
        assert list(extractor.extract(MIXED, 3)) == []
    assert len(model.requests) == len(charged) == 2
    assert "raise extractor.max_tokens" in logs[-1]["problem"]


def test_seeds_differ_by_mode_and_seed_and_repeat_themselves() -> None:
    extractor, model, _ = made(remember())
    for seed in (3, 3, 4):
        extractor.extract(MIXED, seed)
    seeds = [request.seed for request in model.requests]
    assert seeds[:4] == seeds[4:8]
    assert len(set(seeds)) == 8
    assert {request.role for request in model.requests} == {"extractor"}


def test_a_request_offers_the_one_tool_and_asks_for_as_many_items_as_are_wanted() -> None:
    extractor, model, _ = made(
        remember(), per_call=5, reasoning="low", max_tokens=700, temperature=None, **ONE
    )
    extractor.extract(MIXED, 3)
    (request,) = model.requests
    tool: Any = request.tools[0]
    assert (tool["name"], request.must_call) == ("remember", True)
    assert tool["parameters"]["properties"]["items"]["maxItems"] == 5
    assert "at most 5 items" in request.messages[0].text
    params = request.params
    assert (params.reasoning, params.max_tokens, params.temperature) == ("low", 700, None)


@pytest.mark.parametrize(("fails", "error"), [("provider", ProviderError), ("access", AccessError)])
def test_a_service_that_fails_is_no_lesson(fails: str, error: type[Exception]) -> None:
    extractor, _, _ = made(remember(), fails=fails)
    with pytest.raises(error):
        extractor.extract(MIXED, 3)


@pytest.mark.usefixtures("quiet_again")
def test_a_prompt_that_is_too_long_says_what_to_do_and_a_conversation_that_grows_so_ends() -> None:
    extractor, _, _ = made(fails="context", **ONE)
    with pytest.raises(
        PluginError, match=r"doesn't fit into canned/model: .*lower extractor.evidence_tokens"
    ):
        extractor.extract(MIXED, 3)
    extractor, _, _ = made(says("What?"), fails="context", **ONE)
    with capture_logs() as logs:
        assert list(extractor.extract(MIXED, 3)) == []
    assert "outgrown" in logs[-1]["problem"]


def test_what_was_changed_is_told_where_anything_was() -> None:
    for seen, told in (
        (MIXED, False),
        (evolve(MIXED, condition="reshaped"), True),
        (evolve(MIXED, layers=(FAULTS,)), True),
    ):
        extractor, model, _ = made(remember(), **ONE)
        extractor.extract(seen, 3)
        text = model.requests[0].messages[1].text
        assert ("on the benchmark as it is, without them" in text) is told
        assert ("innermost first:" in text) is ("The service is busy." in text) is bool(seen.layers)


def test_own_prompts_replace_packaged_ones() -> None:
    own = {"system": "Be brief: ${count}.", "success": "Look at it."}
    extractor, model, _ = made(remember(), prompts=own, **ONE)
    extractor.extract(MIXED, 3)
    system, user = model.requests[0].messages
    assert system.text == "Be brief: 3."
    assert user.text.endswith("# Your turn\n\nLook at it.")


@pytest.mark.parametrize("name", PLACEHOLDERS)
def test_packaged_prompts_need_what_is_filled_into_them(name: str) -> None:
    values = dict.fromkeys(PLACEHOLDERS[name], "filled in")
    text = texts_of({}).fill(name, **values)
    assert "${" not in text
    assert ("filled in" in text) is bool(values)


KINDS = st.lists(
    st.tuples(st.text("abc", max_size=6), st.booleans(), st.integers(0, 3000)), min_size=1, max_size=7
)


@given(KINDS, st.integers(500, 3000))
def test_evidence_keeps_to_its_room_shows_both_kinds_and_provenance_is_what_is_shown(
    drawn: list[tuple[str, bool, int]], tokens: int
) -> None:
    rollouts = tuple(rolled(n, does, won=won, shows="x" * long) for n, (does, won, long) in enumerate(drawn))
    given = evolve(MIXED, rollouts=rollouts)
    for mode in MODES:
        told = Brief(texts_of({}), tokens, 3).told(mode, given)
        if told is None:
            assert not rollouts_for(mode, given)
            continue
        evidence = told.messages[1].text.split("# The rollouts, step by step")[1]
        assert len(evidence) <= tokens * TOKEN + 2000  # the words around them
        shown = re.findall(r"^## Rollout (\d+): (\w+)", evidence, re.MULTILINE)
        assert {int(number) for number, _ in shown} == {rolled.episode.index for rolled in told.rollouts}
        assert all(each in rollouts_for(mode, given) for each in told.rollouts)
        if mode in ("contrast", "pair"):
            assert {word for _, word in shown} == {"failure", "success"}


def test_rollouts_of_several_streams_are_told_apart() -> None:
    rollouts = tuple(
        evolve(each, episode=evolve(each.episode, stream=stream, index=0))
        for each, stream in zip(MIXED.rollouts, ("confirm", "report", "confirm", "report"), strict=True)
    )
    told = Brief(texts_of({}), 8000, 3).told("contrast", evolve(MIXED, rollouts=rollouts))
    assert told is not None
    assert told.rollouts == rollouts


@pytest.mark.parametrize(
    ("config", "says_what"),
    [
        ({}, "model: missing"),
        ({"model": ""}, "model"),
        ({"model": "m", "temperature": 3}, "temperature"),
        ({"model": "m", "modes": []}, "at least one of contrast, failure, success, pair"),
        ({"model": "m", "modes": ["pair", "pair"]}, "none twice"),
        ({"model": "m", "modes": ["sucess"]}, "modes"),
        ({"model": "m", "per_call": 0}, "per_call"),
        ({"model": "m", "reasks": 11}, "reasks"),
        ({"model": "m", "evidence_tokens": 10}, "evidence_tokens"),
        ({"model": "m", "reasoning": "hard"}, "reasoning"),
        ({"model": "m", "prompts": {"sytem": "x"}}, "unknown prompt 'sytem' (did you mean 'system'?)"),
        ({"model": "m", "prompts": {"system": "${cuont}"}}, "${count}"),
    ],
)
def test_a_wrong_config_says_which_field(config: Any, says_what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        structure(config, ReasoningBankConfig, "extractor")
    assert says_what in str(caught.value)


def test_it_is_found_under_its_name_waits_and_says_that_it_needs_a_session() -> None:
    found = Plugins().find(EXTRACTOR, "llm/reasoningbank")
    extractor = found.make(found.configure({"model": "none/none", "modes": ["pair"]}, "extractor"))
    assert isinstance(extractor, ReasoningBank)
    assert extractor.waits
    assert extractor.config.modes == ("pair",)
    with pytest.raises(PluginError, match="attach it"):
        extractor.extract(MIXED, 3)


def test_services_take_what_it_asks_and_real_rollouts_teach() -> None:
    bridge, task = Toy24(), "1-4-8-11"
    played = rollout("toy24", task, {"use": "solver", "skill": 0.0}, count=6)
    given = Experience(
        TaskSummary(task, "train", "Make 24."),
        "Make 24 from 1, 4, 8, 11.",
        "original",
        (),
        tuple(Rollout(each.episode, each.trajectory) for each in played),
        tuple(bridge.tools()),
    )
    assert len(modes_of(given)) == 4
    told = [Said(calls=[("remember", json.dumps({"items": [item(f"word{n}")]}))]) for n in range(3)]
    brain = script(Said("Sorry, no."), Said(f"```json\n{json.dumps([item('fenced')])}\n```"), *told)
    charged: list[JsonObject] = []
    with ModelServer(brain, [Fault.rate_limited(retry_after=0.05)]) as server:
        extractor = ReasoningBank(ReasoningBankConfig("openai/canned"))
        settings: JsonObject = {"api_base": server.base_url, "keys": ["TEST_MODEL_KEY"]}
        extractor.attach(Session(None, settings, lambda _, usage: charged.append(usage)))
        skills = extractor.extract(given, 3)
        bodies: list[Any] = [asked.body for asked in server.requests if asked.status == 200]
    assert titles(skills) == ["fenced", "word0", "word1", "word2"]
    assert skills[0].support == 6
    assert len(bodies) == len(charged) == 5
    assert all(body["tool_choice"] == "required" and body["temperature"] == 0.2 for body in bodies)
    assert [message["role"] for message in bodies[1]["messages"]] == ["system", "user", "assistant", "user"]
    assert "combine(i, j, op)" in bodies[0]["messages"][1]["content"]
