"""The model designer: what becomes of its answers, and that none is accepted by default."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from canned_designer import (  # type: ignore[import-not-found]
    DIAGNOSIS,
    FAULTS,
    called,
    designer,
    evidence,
    proposed,
)
from canned_policy import USED, calls, says  # type: ignore[import-not-found]

from envharness_core import Attempt, Candidate, ComponentSpec, Decision, Diagnosis, Plugins
from envharness_core.converter import structure
from envharness_core.errors import AccessError, ConfigError, PluginError, ProviderError
from envharness_core.jsondata import JsonObject
from envharness_core.kinds import DESIGNER
from envharness_core.session import Session
from envharness_core.testing import ModelServer, Said, script
from envharness_llm.designer import DesignerConfig, ModelDesigner

FOUND = Diagnosis("flaw", "evidence", "harden")
SOURCE = "class _Rules(Rules):\n    def filter_action(self, action, env_state):\n        return action\n"
EARLIER = Attempt(
    Candidate((ComponentSpec("core/faults", {"rate": 0.2}), ComponentSpec("core/rules", {"source": SOURCE})))
)

UNUSABLE = {
    "no call": (says("I would look at the undo tool."), "no tool call"),
    "nothing": (says(""), "no tool call"),
    "a word": (says("REJECT!!"), "no tool call"),
    "consent without a call": (says("ACCEPT"), "no tool call"),
    "an unknown tool": (called("accept"), "there is no tool 'accept'"),
    "null": (
        calls(
            ("propose", "null"),
        ),
        "must be a JSON object",
    ),
    "a list": (calls(("propose", "[]")), "must be a JSON object"),
    "nothing as arguments": (calls(("propose", "")), "aren't JSON"),
    "no JSON": (calls(("propose", '{"layers": [')), "aren't JSON"),
    "too deep": (calls(("propose", "[" * 100_000)), "aren't JSON"),
    "not a number": (calls(("propose", '{"rationale": NaN}')), "must be a JSON object: rationale"),
    "a lone surrogate": (calls(("propose", '{"rationale": "\\ud800"}')), "rationale"),
    "two calls": (calls(("give_up", '{"reason": "a"}'), ("give_up", '{"reason": "b"}')), "2 calls"),
    "cut off": (evolve(proposed(FAULTS), finish="length"), "cut off at the token limit"),
    "filtered": (evolve(proposed(FAULTS), finish="filtered"), "content filter"),
}
BAD_CANDIDATES = {
    "an empty object": (called("propose"), "propose.rationale: missing"),
    "a blank rationale": (proposed(FAULTS, rationale=" "), "propose.rationale: must not be empty"),
    "no layers": (proposed(), "propose.layers: empty"),
    "layers as text": (proposed(layers="[]"), "propose.layers: expected a list"),
    "a layer as text": (proposed("faults"), "propose.layers[0]: expected an object"),
    "a layer without a name": (proposed({"rate": 0.2}), "propose.layers[0].use: missing"),
    "an unknown layer": (proposed({"use": "falts"}), "unknown layer 'falts'"),
    "an unknown key": (proposed({**FAULTS, "rte": 0.1}), "unknown key 'rte' (did you mean 'rate'?)"),
    "a wrong type": (proposed({"use": "core/faults", "rate": "often"}), "rate: expected a number, got 'often'"),
    "a missing key": (proposed({"use": "core/budget"}), "propose.layers[0] (core/budget).steps: missing"),
    "the same again": (proposed(FAULTS, {"use": "core/rules", "source": SOURCE}), "the same as attempt 1"),
    "the same code with a comment": (
        proposed(FAULTS, {"use": "core/rules", "source": f"# better now\n\n{SOURCE}"}),
        "the same as attempt 1",
    ),
}  # fmt: skip


def _last_word(model: Any) -> str:
    return "".join(message.text for message in model.requests[-1].messages[2:])


@pytest.mark.parametrize("name", [*UNUSABLE, *BAD_CANDIDATES])
def test_a_bad_proposal_is_asked_again_with_the_reason_and_then_costs_the_attempt(name: str) -> None:
    answer, says_what = (UNUSABLE | BAD_CANDIDATES)[name]
    made, model, charged = designer(answer)
    candidate = made.propose(evidence(), FOUND, (EARLIER,))
    assert candidate.layers == ()
    assert says_what in candidate.rationale
    assert [request.number for request in model.requests] == [0, 1, 2]
    assert says_what in _last_word(model)
    assert charged.usages == [("designer", USED)] * 3


@pytest.mark.parametrize("name", [*UNUSABLE, *BAD_CANDIDATES])
def test_a_good_proposal_after_a_bad_one_counts(name: str) -> None:
    answer, _ = (UNUSABLE | BAD_CANDIDATES)[name]
    made, model, _ = designer(answer, proposed({"use": "faults", "rate": 0.3}))
    candidate = made.propose(evidence(), FOUND, (EARLIER,))
    assert candidate == Candidate(
        (ComponentSpec("core/faults", {"rate": 0.3}),), "It strikes the flaw.\nSolvable: Adding still wins."
    )
    assert len(model.requests) == 2


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_diagnosis_that_cant_be_had_costs_the_task(name: str) -> None:
    made, model, charged = designer(UNUSABLE[name][0], reasks=1)
    with pytest.raises(PluginError, match="no diagnosis from canned/model: no usable answer in 2 tries"):
        made.diagnose(evidence())
    assert len(model.requests) == len(charged.usages) == 2


@pytest.mark.parametrize(
    "changes", [{"direction": "sideways"}, {"direction": None}, {"flaw": ""}, {"flaw": 3}, {"mood": "good"}]
)
def test_a_diagnosis_that_doesnt_fit_is_none(changes: Any) -> None:
    made, _, _ = designer(called("diagnose", **DIAGNOSIS | changes))
    with pytest.raises(PluginError, match=f"diagnose.*{next(iter(changes))}"):
        made.diagnose(evidence())


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_review_that_cant_be_had_rejects(name: str) -> None:
    made, _, _ = designer(UNUSABLE[name][0], review=True)
    assert made.review(evidence(), FOUND, (), EARLIER) is Decision.REJECT


@pytest.mark.parametrize("word", ["accept", "more", "refine", "reject"])
def test_a_review_is_the_models_word(word: str) -> None:
    made, model, _ = designer(called("review", reason="So it is.", word=word), review=True)
    assert made.review(evidence(), FOUND, (), EARLIER) is Decision[word.upper()]
    assert [tool["name"] for tool in model.requests[0].tools] == ["review"]


def test_a_review_that_isnt_wanted_asks_nobody() -> None:
    made, model, _ = designer(says("REJECT"))
    assert made.review(evidence(), FOUND, (), EARLIER) is Decision.ACCEPT
    assert model.requests == []


def test_a_diagnosis_is_read_in_full() -> None:
    made, model, _ = designer(
        called("diagnose", **DIAGNOSIS), temperature=None, reasoning="high", max_tokens=9
    )
    found = made.diagnose(evidence())
    assert {name: getattr(found, name) for name in DIAGNOSIS} == DIAGNOSIS
    (request,) = model.requests
    assert (request.params.model, request.params.temperature) == ("canned/model", None)
    assert (request.params.reasoning, request.params.max_tokens) == ("high", 9)
    assert (request.role, request.must_call, [message.role for message in request.messages]) == (
        "designer", True, ["system", "user"],
    )  # fmt: skip


def test_giving_up_is_no_candidate() -> None:
    made, _, _ = designer(called("give_up", reason="Nothing fits."))
    assert made.propose(evidence(), FOUND, ()) is None


def test_seeds_differ_by_task_stage_and_attempt_and_repeat_themselves() -> None:
    made, model, _ = designer(
        called("diagnose", **DIAGNOSIS),
        proposed(FAULTS),
        proposed(FAULTS),
        proposed({"use": "budget", "steps": 9}),
    )
    made.diagnose(evidence())
    made.propose(evidence(), FOUND, ())
    made.propose(evolve(evidence(), seed=12), FOUND, ())
    made.propose(evidence(), FOUND, (EARLIER,))
    made.propose(evidence(), FOUND, (EARLIER,))
    seeds = [request.seed for request in model.requests]
    assert len(set(seeds)) == 4
    assert seeds[3] == seeds[4]


def test_a_call_that_can_be_shown_again_is_answered_as_a_call() -> None:
    made, model, _ = designer(proposed(), proposed(FAULTS))
    made.propose(evidence(), FOUND, ())
    call, result = model.requests[1].messages[2:]
    assert (call.role, [made.name for made in call.calls]) == ("assistant", ["propose"])
    assert (result.role, result.call_id) == ("tool", call.calls[0].id)


@pytest.mark.parametrize("name", ["no JSON", "an unknown tool", "null"])
def test_a_call_that_services_may_refuse_to_see_is_repeated_as_text(name: str) -> None:
    made, model, _ = designer(UNUSABLE[name][0], proposed(FAULTS))
    made.propose(evidence(), FOUND, ())
    said, problem = model.requests[1].messages[2:]
    assert (said.role, said.calls, problem.role) == ("assistant", (), "user")
    assert model.requests[0].messages == model.requests[1].messages[:2]


def test_of_what_was_cut_off_nothing_is_repeated() -> None:
    made, model, _ = designer(UNUSABLE["cut off"][0], proposed(FAULTS))
    made.propose(evidence(), FOUND, ())
    assert [message.role for message in model.requests[1].messages[2:]] == ["user"]


@pytest.mark.parametrize(("fails", "error"), [("provider", ProviderError), ("access", AccessError)])
def test_a_service_that_fails_stops_the_run(fails: str, error: type[Exception]) -> None:
    made, _, _ = designer(fails=fails)
    with pytest.raises(error):
        made.propose(evidence(), FOUND, ())


def test_a_prompt_that_is_too_long_says_what_to_do() -> None:
    made, _, _ = designer(fails="context")
    with pytest.raises(PluginError, match=r"doesn't fit into canned/model: .*lower designer.evidence_tokens"):
        made.diagnose(evidence())


def test_a_designer_without_a_model_says_so() -> None:
    with pytest.raises(PluginError, match="attach it"):
        ModelDesigner(DesignerConfig("m")).diagnose(evidence())


@pytest.mark.parametrize(
    ("config", "says_what"),
    [
        ({}, "model: missing"),
        ({"model": ""}, "model"),
        ({"model": "m", "temperature": 3}, "temperature"),
        ({"model": "m", "reasks": 11}, "reasks"),
        ({"model": "m", "evidence_tokens": 10}, "evidence_tokens"),
        ({"model": "m", "reasoning": "hard"}, "reasoning"),
        ({"model": "m", "prompts": {"sytem": "x"}}, "unknown prompt 'sytem' (did you mean 'system'?)"),
        ({"model": "m", "prompts": {"propose": "${situatoin}"}}, "${situation}"),
    ],
)
def test_a_wrong_config_says_which_field(config: Any, says_what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        structure(config, DesignerConfig, "designer")
    assert says_what in str(caught.value)


def test_it_is_found_under_its_name_and_waits() -> None:
    found = Plugins().find(DESIGNER, "llm")
    made = found.make(found.configure({"model": "none/none"}, "designer"))
    assert isinstance(made, ModelDesigner)
    assert made.waits


def test_services_take_what_it_asks_and_asks_again() -> None:
    found = called("diagnose", **DIAGNOSIS).calls[0]
    brain = script(
        Said("REJECT!!"),
        Said(calls=[("diagnose", '{"flaw": ')]),
        Said(calls=[("diagnose", "{}")]),
        Said(calls=[(found.name, found.arguments)]),
    )
    with ModelServer(brain) as server:
        made = ModelDesigner(DesignerConfig("openai/canned", reasks=3))
        settings: JsonObject = {"api_base": server.base_url, "keys": ["TEST_MODEL_KEY"]}
        made.attach(Session(settings=settings))
        assert made.diagnose(evidence()).flaw == DIAGNOSIS["flaw"]
        bodies: list[Any] = [asked.body for asked in server.requests]
    assert [asked["tool_choice"] for asked in bodies] == ["required"] * 4
    assert bodies[0]["tools"][0]["function"]["name"] == "diagnose"
    roles = [message["role"] for message in bodies[3]["messages"]]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user", "assistant", "tool"]
