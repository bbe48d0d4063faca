"""What a campaign owes to components that ask models: time, an account, a budget, and an end where they are refused."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Timer
from typing import Any, cast

import pytest
from paid_models import Slow  # type: ignore[import-not-found]

from envharness_core import campaign, rollout
from envharness_core.campaigns.batch import Ask, Batch, Play, driven
from envharness_core.campaigns.estimate import estimate_run
from envharness_core.campaigns.run import run_campaign
from envharness_core.campaigns.schedule import DrainedError, Scheduler
from envharness_core.campaigns.summary import summarise
from envharness_core.config import make_config
from envharness_core.episode import Design, Episode
from envharness_core.errors import ConfigError, ProviderError, RunError
from envharness_core.executors.inline import Inline
from envharness_core.jsondata import JsonObject
from envharness_core.outcome import Outcome
from envharness_core.plugins import Plugins
from envharness_core.store import Store

PLUGINS = {"paid": "paid_models"}


def config(**changes: Any) -> JsonObject:
    told: JsonObject = {
        "seed": 3,
        "bridge": "toy24",
        "policy": {"use": "paid/paid"},
        "designer": {"use": "paid/slow", "seconds": 0.0},
        "tasks": {"limit": 4},
        "limits": {"steps": 12},
        "campaign": {"rollouts": 3, "attempts": 2},
        "executor": {"use": "threads", "threads": 4},
        "plugins": {**PLUGINS},
    }
    return {**told, **changes}


def run(folder: Path, **changes: Any) -> Any:
    return campaign(config(**changes), folder)


def keys(folder: Path) -> dict[str, float]:
    with Store.open(folder, read_only=True) as store:
        return {row.key: row.episode.seconds for row in store.recorded() if row.episode}


class TestAsking:
    def test_designers_that_wait_are_asked_at_the_same_time(self, tmp_path: Path) -> None:
        Slow.peak = 0
        run(tmp_path, designer={"use": "paid/slow", "seconds": 0.3}, tasks={"limit": 6})
        assert Slow.peak > 1

    def test_others_are_asked_one_by_one(self, tmp_path: Path) -> None:
        Slow.peak = 0
        run(tmp_path, designer={"use": "paid/slow", "seconds": 0.02, "waits": False})
        assert Slow.peak == 1

    @pytest.mark.parametrize("executor", ["inline", "threads", "local"])
    def test_the_results_are_the_same(self, tmp_path: Path, executor: str) -> None:
        designers = [{"use": "paid/slow", "seconds": 0.03 * waits, "waits": waits} for waits in (True, False)]
        first, second = (
            run(tmp_path / str(place), designer=designer, executor={"use": executor})
            for place, designer in enumerate(designers)
        )
        assert set(keys(tmp_path / "0")) == set(keys(tmp_path / "1"))
        assert {**first, "seconds": 0} == {**second, "seconds": 0}

    def test_a_service_that_is_down_stops_the_run_and_costs_no_task(self, tmp_path: Path) -> None:
        with pytest.raises(ProviderError, match="service is down"):
            run(tmp_path, designer={"use": "paid/slow", "seconds": 0.0, "fails": "down"})
        with Store.open(tmp_path, read_only=True) as store:
            assert store.results() == []
            assert store.counts()

    @pytest.mark.parametrize("fails", ["broken", "refused"])
    def test_a_designer_that_breaks_or_whose_call_is_refused_costs_its_task(
        self, tmp_path: Path, fails: str
    ) -> None:
        summary = run(tmp_path, designer={"use": "paid/slow", "seconds": 0.0, "fails": fails})
        assert summary["faults"] == summary["tasks"] == 4

    def test_a_run_is_stopped_while_a_designer_thinks(self, tmp_path: Path) -> None:
        stop = Event()
        told = make_config(config(designer={"use": "paid/slow", "seconds": 2.0}))
        Timer(1.0, stop.set).start()
        Slow.calls = Slow.under_way = 0
        with pytest.raises(DrainedError):
            run_campaign(told, tmp_path, stop=stop)
        assert Slow.calls > 0
        assert Slow.under_way == 0  # what was asked is heard

    def test_what_an_answer_raises_is_raised_where_it_was_asked(self) -> None:
        def divide() -> object:
            return 1 // 0

        def play(*, waits: bool) -> Play[str]:
            try:
                yield Ask(divide, waits)
            except ZeroDivisionError:
                answer = yield Ask(lambda: "well", waits)
                return f"all is {answer}"
            return "not raised"

        assert driven(play(waits=False), lambda _: ()) == "all is well"
        assert driven(play(waits=True), lambda _: ()) == "all is well"

    def test_answers_need_no_episode(self, tmp_path: Path) -> None:
        def play() -> Play[list[int]]:
            answers = []
            for number in range(5):
                answers.append((yield Ask(lambda number=number: number, waits=number % 2 == 0)))  # type: ignore[misc]
            return answers

        told: list[Any] = []
        with Store.create(tmp_path, {}) as store:
            scheduler = Scheduler(store, 0, seed_in_task=True)
            scheduler.start(play(), told.append)
            scheduler.run(Inline(), Plugins())
        assert told == [[0, 1, 2, 3, 4]]


class TestSharing:
    def test_what_two_procedures_want_is_played_once_however_long_they_wait(self, tmp_path: Path) -> None:
        spec = {"bridge": "toy24", "policy": "solver"}
        told = make_config(cast("JsonObject", spec))
        design = Design(told.bridge, "toy24 1", "1-2-3-4", (), told.policy, told.limits)

        def play(delay: float) -> Play[tuple[Episode, ...]]:
            episodes: tuple[Episode, ...] = yield Batch(design, "s", (0, 1), delay=delay)
            return episodes

        heard: list[Episode] = []
        rolled: list[Any] = []
        with Store.create(tmp_path, {}) as store:
            scheduler = Scheduler(store, 0, seed_in_task=True, heard=heard.append)
            for delay in (0.0, 0.0, 0.2, 0.4):
                scheduler.start(play(delay), rolled.append)
            scheduler.run(Inline(), Plugins())
        assert len(heard) == 2
        assert rolled == [rolled[0]] * 4


class TestAccount:
    def test_what_was_used_is_told_by_role(self, tmp_path: Path) -> None:
        summary = run(tmp_path)
        policy, designer = summary["usage"]["policy"], summary["usage"]["designer"]
        episodes = summary["episodes"]["graded"]
        smokes = summary["rollouts"].get("smoke", 0)
        assert policy["episodes"] == episodes - smokes
        assert policy["input_tokens"] == 90 * policy["calls"]
        assert policy["cost_usd"] == pytest.approx(0.01 * policy["calls"])
        assert designer == {"calls": 4, "cost_usd": 2.0}

    def test_a_budget_stops_a_run_and_a_larger_one_goes_on_with_it(self, tmp_path: Path) -> None:
        whole = run(tmp_path / "whole")
        budget = 0.6 * (whole["usage"]["policy"]["cost_usd"] + whole["usage"]["designer"]["cost_usd"])
        with pytest.raises(RunError, match=r"the budget is spent.*budget\.usd.*raise it"):
            run(tmp_path / "part", budget={"usd": budget})
        before = keys(tmp_path / "part")
        assert before
        with Store.open(tmp_path / "part", read_only=True) as store:
            assert cast("float", store.usage()["cost_usd"]) < budget
        with pytest.raises(RunError, match="the budget is spent"):
            run(tmp_path / "part", budget={"usd": budget})
        summary = run(tmp_path / "part", budget={"usd": 100.0})
        after = keys(tmp_path / "part")
        assert {key: after[key] for key in before} == before  # nothing is played again
        assert set(after) == set(keys(tmp_path / "whole"))
        assert {**summary, "seconds": 0} == {**whole, "seconds": 0}

    def test_a_budget_of_tokens_counts_input_and_output(self, tmp_path: Path) -> None:
        with pytest.raises(RunError, match=r"budget\.tokens = 2000"):
            run(tmp_path, budget={"tokens": 2000}, executor={"use": "inline"})
        with Store.open(tmp_path, read_only=True) as store:
            used = store.usage()
        assert 1000 < cast("int", used["input_tokens"]) + cast("int", used["output_tokens"]) <= 2000

    def test_a_price_that_nobody_knows_stops_a_run_with_a_budget_in_dollars(self, tmp_path: Path) -> None:
        with pytest.raises(RunError, match="price of a model isn't known"):
            run(tmp_path, policy={"use": "paid/paid", "unpriced": True}, budget={"usd": 5.0})

    def test_without_a_budget_it_is_counted_all_the_same(self, tmp_path: Path) -> None:
        summary = run(tmp_path, policy={"use": "paid/paid", "unpriced": True})
        assert summary["usage"]["policy"]["unpriced_calls"] == summary["usage"]["policy"]["calls"]


class TestRefusal:
    @pytest.mark.parametrize("executor", ["inline", "threads", "local"])
    def test_a_key_that_is_refused_stops_the_run_at_once(self, tmp_path: Path, executor: str) -> None:
        policy = {"use": "paid/paid", "fails": "refused"}
        with pytest.raises(RunError, match="stopped: no"):
            run(tmp_path, policy=policy, tasks={"limit": 50}, executor={"use": executor})
        with Store.open(tmp_path, read_only=True) as store:
            assert (
                store.counts() == []
            )  # nothing says anything about the policy, and all of it is played again

    def test_a_full_context_is_graded_as_the_agents_limit(self) -> None:
        policy: JsonObject = {"use": "paid/paid", "fails": "full"}
        (played,) = rollout("toy24", "1-2-3-4", policy, plugins=Plugins(PLUGINS))
        assert played.episode.outcome is Outcome.AGENT_LIMIT
        assert played.episode.graded
        assert not played.episode.success
        assert played.episode.steps == 1
        assert "context is full" in played.episode.error

    def test_a_service_that_fails_an_episode_is_no_failure_of_the_policy(self) -> None:
        policy: JsonObject = {"use": "paid/paid", "fails": "down"}
        (played,) = rollout("toy24", "1-2-3-4", policy, plugins=Plugins(PLUGINS))
        assert played.episode.outcome is Outcome.PROVIDER_ERROR
        assert played.episode.verdict is None

    def test_a_reply_without_an_action_says_why(self) -> None:
        (played,) = rollout("toy24", "1-2-3-4", "paid/silent", plugins=Plugins(PLUGINS))
        first, _ = played.trajectory.steps
        assert first.response.info["malformed"] == "the reply was cut off"
        assert "the reply was cut off" in first.response.observation.text

    def test_temperature_0_with_several_rollouts_and_a_band_is_refused_at_the_start(
        self, tmp_path: Path
    ) -> None:
        policy = {"use": "paid/paid", "temperature": 0}
        with pytest.raises(ConfigError, match=r"temperature 0.*a temperature above 0"):
            run(tmp_path / "a", policy=policy)
        assert not (tmp_path / "a").exists()
        run(tmp_path / "b", policy=policy, campaign={"rollouts": 1, "attempts": 1})
        run(tmp_path / "c", policy=policy, objective={"use": "step_band", "low": 3, "high": 5})


class TestSessions:
    @pytest.mark.parametrize("executor", ["inline", "threads", "local"])
    def test_policies_know_the_run_folder_and_their_plugins_settings(
        self, tmp_path: Path, executor: str
    ) -> None:
        folder = tmp_path / "here"
        run(folder, settings={"paid": {"mood": "good"}}, executor={"use": executor}, designer="noop")
        with Store.open(folder, read_only=True) as store:
            texts = {store.trajectory(row.episode).steps[0].text for row in store.recorded() if row.episode}
        assert texts == {"here good 0"}

    def test_settings_change_no_result(self, tmp_path: Path) -> None:
        first = run(tmp_path, settings={"paid": {"mood": "good"}}, budget={"usd": 50.0})
        assert run(tmp_path, settings={"paid": {"mood": "bad"}}) == first

    def test_wrong_settings_are_refused_before_anything_is_written(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"settings\.paid\.wrong: unknown key"):
            run(tmp_path / "a", settings={"paid": {"wrong": 1}})
        with pytest.raises(ConfigError, match=r"settings: unknown plugin 'paied'.*did you mean 'paid'"):
            run(tmp_path / "a", settings={"paied": {"mood": 1}})
        assert not (tmp_path / "a").exists()

    def test_a_campaign_that_learns_nothing_asks_for_no_extractor(self, tmp_path: Path) -> None:
        told = config(extractor={"use": "paid/says", "fails": "attach"})
        assert cast("Any", campaign(told, tmp_path / "a"))["tasks"] == 4
        with pytest.raises(ConfigError, match=r"settings\.paid: there is no key"):
            campaign({**told, "skills": {"coevolve": True}}, tmp_path / "b")
        assert not (tmp_path / "b").exists()

    def test_outside_of_a_run_there_is_no_folder(self) -> None:
        plugins = Plugins(PLUGINS, settings={"paid": {"mood": "fair"}})
        (played,) = rollout("toy24", "1-2-3-4", "paid/paid", skills=["a", "b"], plugins=plugins)
        assert played.trajectory.steps[0].text == "nowhere fair 2"


class TestCutShort:
    def test_what_failed_in_a_session_that_was_cut_short_is_played_again(self, tmp_path: Path) -> None:
        down = {"use": "paid/paid", "fails": "down"}
        with pytest.raises(RunError, match="what failed is then played again"):
            run(
                tmp_path,
                policy=down,
                tasks={"limit": 30},
                designer="noop",
                campaign={"rollouts": 3, "backoff": 0.0},
            )
        with Store.open(tmp_path, read_only=True) as store:
            assert store.excluded() == {"provider_error": 20}
            assert store.results() == []  # nothing was decided from failures
        with pytest.raises(RunError, match="20 of this session's 20"):
            run(
                tmp_path,
                policy=down,
                tasks={"limit": 30},
                designer="noop",
                campaign={"rollouts": 3, "backoff": 0.0},
            )

    def test_a_stopped_run_tells_what_it_has_used(self, tmp_path: Path) -> None:
        with pytest.raises(RunError, match="the budget is spent"):
            run(tmp_path, budget={"usd": 1.0})
        with Store.open(tmp_path, read_only=True) as store:
            used = summarise(store, make_config(config()))["usage"]
        assert cast("Any", used)["policy"]["calls"] > 0

    def test_a_price_that_is_set_afterwards_lets_a_run_go_on(self, tmp_path: Path) -> None:
        unpriced = {"use": "paid/paid", "unpriced": True}
        with pytest.raises(RunError, match="price of a model isn't known"):
            run(tmp_path, policy=unpriced, budget={"usd": 50.0}, executor={"use": "inline"})
        assert run(tmp_path, policy=unpriced, budget={"tokens": 10**9})["tasks"] == 4


def test_a_dry_run_uses_the_settings() -> None:
    with pytest.raises(ConfigError, match=r"settings\.paid\.wrong"):
        estimate_run(make_config(config(settings={"paid": {"wrong": 1}})))
    with pytest.raises(RunError, match="nothing can be measured: no"):
        estimate_run(make_config(config(policy={"use": "paid/paid", "fails": "refused"})))


def test_without_a_report_nothing_is_said_of_the_band(tmp_path: Path) -> None:
    assert run(tmp_path)["in_band"] == {"before": None, "after": None}
