"""Evaluations: learnt on some tasks, scored on others, resumed; and no skill on its own task."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest
from paid_evaluations import PLUGINS, by_name, config, played  # type: ignore[import-not-found]
from paid_models import Says  # type: ignore[import-not-found]

from envharness_core import campaign, evaluate
from envharness_core.campaigns.schedule import DrainedError
from envharness_core.config import make_config
from envharness_core.errors import CheckpointError, ConfigError, ProviderError
from envharness_core.evaluation.run import run_evaluation
from envharness_core.plugins import Plugins
from envharness_core.skills.bank import SkillBank
from envharness_core.skills.skill import Provenance, Skill
from envharness_core.store import Store
from envharness_core.verify import verify_run


class TestProtocol:
    def test_each_condition_attempts_each_task_once_a_run(self, source: Path, tmp_path: Path) -> None:
        summary = evaluate(config(), tmp_path / "e", source=source)
        rows = by_name(summary)
        assert list(rows) == ["none", "original", "reshaped"]
        for row in rows.values():
            assert (row["tasks"], row["graded"], row["missing"], len(row["runs"])) == (8, 16, 0, 2)
            assert row["success_rate"] == pytest.approx(sum(row["runs"]) / 2)
        assert [(pair["condition"], pair["over"]) for pair in cast("list[Any]", summary["comparisons"])] == [
            ("original", "none"),
            ("reshaped", "none"),
            ("reshaped", "original"),
        ]

    def test_learnt_conditions_have_the_same_budget(self, source: Path, tmp_path: Path) -> None:
        rows = by_name(evaluate(config(), tmp_path / "e", source=source))
        original, reshaped = rows["original"]["learnt"], rows["reshaped"]["learnt"]
        for key in ("environments", "rollouts"):
            assert original[key] == reshaped[key] > 0
        assert original["skills"] == reshaped["skills"] == 2 * original["environments"]
        assert original["rollouts"] == 3 * original["environments"]

    def test_attempts_are_on_the_bare_bridge_and_paired(self, source: Path, tmp_path: Path) -> None:
        evaluate(config(), tmp_path / "e", source=source)
        with Store.open(tmp_path / "e", read_only=True) as store:
            rows = [row for row in store.recorded() if row.episode and row.episode.stream.startswith("eval")]
        assert all(not (row.design or {})["layers"] for row in rows)
        seeds: dict[Any, set[Any]] = {}
        for row in rows:
            assert row.episode
            seeds.setdefault((row.task, row.episode.stream), set()).add(row.seeds)
        assert all(len(same) == 1 for same in seeds.values())
        assert len({(row.design or {})["skills"].__repr__() for row in rows}) > 2

    def test_lessons_of_original_are_on_the_bare_bridge_and_of_reshaped_on_the_stack(
        self, source: Path, tmp_path: Path
    ) -> None:
        evaluate(config(), tmp_path / "e", source=source)
        with Store.open(tmp_path / "e", read_only=True) as store:
            lessons = [row for row in store.recorded() if row.episode and row.episode.stream == "skills"]
        stacks: dict[str, set[int]] = {}
        for row in lessons:
            stacks.setdefault(row.task, set()).add(len(cast("list[Any]", (row.design or {})["layers"])))
        assert all(sizes == {0, 1} for sizes in stacks.values())

    def test_a_skill_is_never_given_to_the_task_that_taught_it(self, source: Path, tmp_path: Path) -> None:
        told = config(
            evaluation={"split": "train", "limit": 6, "runs": 1}, skills={"retrieve": 50, "rollouts": 2}
        )
        summary = evaluate(told, tmp_path / "e", source=source)
        assert cast("int", summary["overlap"]) >= 2
        told_to: dict[str, str] = {}
        with Store.open(tmp_path / "e", read_only=True) as store:
            for row in store.recorded():
                if row.episode and row.episode.stream.startswith("eval"):
                    skills = " ".join(cast("list[str]", (row.design or {})["skills"]))
                    told_to[row.task] = told_to.get(row.task, "") + skills
        assert any("lesson of" in skills for skills in told_to.values())
        for task, skills in told_to.items():
            assert f"lesson of {task} " not in skills

    def test_policies_are_given_so_many_skills(self, source: Path, tmp_path: Path) -> None:
        evaluate(config(skills={"retrieve": 2, "rollouts": 2}), tmp_path / "e", source=source)
        counts = {
            len(cast("list[Any]", design["skills"]))
            for design in played(tmp_path / "e").values()
            if not design["layers"]
        }
        assert counts == {0, 2}

    def test_without_a_campaign_original_learns_on_the_runs_tasks(self, tmp_path: Path) -> None:
        told = config(evaluation={"conditions": ["none", "original"], "limit": 3, "runs": 1})
        rows = by_name(evaluate(told, tmp_path / "e"))
        assert rows["original"]["learnt"]["environments"] == 4
        assert SkillBank.read(tmp_path / "e" / "bank-original.jsonl").skills

    def test_a_bank_of_ones_own_is_a_condition(self, tmp_path: Path) -> None:
        bank = SkillBank([Skill("Count", "always", "Count to three.", Provenance("elsewhere"))])
        bank.write(tmp_path / "mine.jsonl")
        evaluation = {
            "conditions": ["none", "mine"],
            "banks": {"mine": str(tmp_path / "mine.jsonl")},
            "limit": 3,
        }
        rows = by_name(evaluate(config(evaluation=evaluation), tmp_path / "e"))
        assert rows["mine"]["learnt"] == {"skills": 1, "equipped_tasks": 3}

    @pytest.mark.parametrize("executor", ["inline", "threads", "local"])
    def test_what_several_conditions_have_in_common_is_played_once(
        self, tmp_path: Path, executor: str
    ) -> None:
        for name in ("a", "b"):
            (tmp_path / f"{name}.jsonl").write_text("")
        banks = {name: str(tmp_path / f"{name}.jsonl") for name in ("a", "b")}
        evaluation = {"conditions": ["none", "a", "b"], "banks": banks, "limit": 5, "runs": 2}
        told: Any = evaluate(config(evaluation=evaluation, executor=executor), tmp_path / "e")
        assert told["rollouts"] == {"eval": 10}
        assert [row["graded"] for row in told["conditions"]] == [10, 10, 10]
        assert all(pair["difference"] == 0 for pair in told["comparisons"])

    def test_verdicts_are_borne_out(self, source: Path, tmp_path: Path) -> None:
        evaluate(config(), tmp_path / "e", source=source)
        with Store.open(tmp_path / "e", read_only=True) as store:
            found = verify_run(store, Plugins(PLUGINS))
        assert found.agreed == found.episodes > 0
        assert found.missing == 0


class TestGoingOn:
    def test_a_complete_one_answers_from_its_store(self, source: Path, tmp_path: Path) -> None:
        first = evaluate(config(), tmp_path / "e", source=source)
        before = Says.calls
        assert evaluate(config(), tmp_path / "e", source=source) == first
        assert Says.calls == before

    @pytest.mark.parametrize("after", [1, 7, 20, 40])
    def test_a_stopped_one_goes_on_and_asks_nothing_twice(
        self, source: Path, tmp_path: Path, after: int
    ) -> None:
        whole = evaluate(config(), tmp_path / "whole", source=source)
        Says.calls = 0
        stop = Event()
        told = make_config(config())

        def listen(progress: Any) -> None:
            if progress.episodes >= after:
                stop.set()

        with pytest.raises(DrainedError):
            run_evaluation(told, tmp_path / "part", source, listener=listen, stop=stop)
        before = set(played(tmp_path / "part"))
        assert 0 < len(before) < len(played(tmp_path / "whole"))
        summary = evaluate(config(), tmp_path / "part", source=source)
        lessons = 2 * by_name(whole)["original"]["learnt"]["environments"]
        assert Says.calls == lessons
        assert {**summary, "seconds": 0} == {**whole, "seconds": 0}
        for name in ("bank-original.jsonl", "bank-reshaped.jsonl"):
            assert (tmp_path / "part" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()

    @pytest.mark.parametrize("executor", ["threads", "local"])
    def test_the_executor_changes_nothing(self, source: Path, tmp_path: Path, executor: str) -> None:
        one = evaluate(config(), tmp_path / "a", source=source)
        other = evaluate(config(executor=executor), tmp_path / "b", source=source)
        assert {**one, "seconds": 0} == {**other, "seconds": 0}

    def test_another_config_is_refused_with_the_difference(self, source: Path, tmp_path: Path) -> None:
        evaluate(config(), tmp_path / "e", source=source)
        with pytest.raises(ConfigError, match=r"skills\.retrieve: "):
            evaluate(
                config(skills={"retrieve": 1, "rollouts": 3, "per_task": 2}), tmp_path / "e", source=source
            )
        with pytest.raises(ConfigError, match="another config"):
            campaign(config(), tmp_path / "e")
        with pytest.raises(ConfigError, match="another config"):
            evaluate(config(), source, source=source)


class TestTrouble:
    def test_an_extractor_that_breaks_costs_its_lessons_and_is_told(
        self, source: Path, tmp_path: Path
    ) -> None:
        for fails, word in (("raises", "the extractor broke"), ("nonsense", "must return skills")):
            told = config(extractor={"use": "paid/says", "fails": fails})
            rows = by_name(evaluate(told, tmp_path / fails, source=source))
            assert rows["original"]["learnt"]["skills"] == 0
            assert all(word in problem for problem in rows["original"]["learnt"]["problems"])
            assert rows["none"]["success_rate"] == rows["original"]["success_rate"]

    def test_what_lessons_cost_is_counted_once_however_often_it_is_stopped(
        self, source: Path, tmp_path: Path
    ) -> None:
        whole: Any = evaluate(config(), tmp_path / "whole", source=source)
        assert (
            whole["usage"]["extractor"]["calls"] == 2 * by_name(whole)["original"]["learnt"]["environments"]
        )
        told = make_config(config())
        for after in (4, 14, 24):
            stop = Event()

            def listen(progress: Any, stop: Event = stop, after: int = after) -> None:
                if progress.episodes >= after:
                    stop.set()

            with pytest.raises(DrainedError):
                run_evaluation(told, tmp_path / "part", source, listener=listen, stop=stop)
        part: Any = evaluate(config(), tmp_path / "part", source=source)
        assert part["usage"] == whole["usage"]

    def test_a_bank_that_cant_be_read_as_a_whole_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "mine.jsonl").write_text('{"title": "x"}\n')
        evaluation = {"conditions": ["mine"], "banks": {"mine": str(tmp_path / "mine.jsonl")}}
        with pytest.raises(ConfigError, match=r"evaluation\.banks\.mine: mend or take out: .*mine\.jsonl:1"):
            evaluate(config(evaluation=evaluation), tmp_path / "e")

    def test_unsealing_what_isnt_sealed_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="nothing to unseal"):
            evaluate(config(evaluation={"conditions": ["none"]}), tmp_path / "e", unseal=True)

    def test_where_nothing_was_learnt_it_says_that_nothing_was_tested(
        self, source: Path, tmp_path: Path
    ) -> None:
        told: Any = evaluate(
            config(extractor={"use": "paid/says", "fails": "raises"}), tmp_path / "e", source=source
        )
        assert all("nothing was tested" in pair["sentence"] for pair in told["comparisons"])

    def test_a_service_that_is_down_stops_it_and_loses_nothing(self, source: Path, tmp_path: Path) -> None:
        with pytest.raises(ProviderError):
            evaluate(config(extractor={"use": "paid/says", "fails": "down"}), tmp_path / "e", source=source)
        assert played(tmp_path / "e")

    def test_reshaped_needs_a_campaign(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"'reshaped' learns on the stacks.*--from"):
            evaluate(config(), tmp_path / "e")
        assert not (tmp_path / "e").exists()

    def test_what_isnt_a_campaign_is_refused(self, source: Path, tmp_path: Path) -> None:
        with pytest.raises(CheckpointError, match="not a run folder"):
            evaluate(config(), tmp_path / "e", source=tmp_path)
        evaluate(config(evaluation={"conditions": ["none"], "limit": 1, "runs": 1}), tmp_path / "e")
        with pytest.raises(CheckpointError, match="an evaluation, not a campaign"):
            evaluate(config(), tmp_path / "f", source=tmp_path / "e")
        with pytest.raises(ConfigError, match="another config than this evaluation's"):
            evaluate(
                config(
                    bridge="testing/counter",
                    plugins={**PLUGINS, "testing": "envharness_core.testing.plugin"},
                    policy="random",
                ),
                tmp_path / "f",
                source=source,
            )

    @pytest.mark.parametrize(
        ("evaluation", "problem"),
        [
            ({"conditions": ["mine"]}, "unknown condition 'mine'"),
            ({"conditions": []}, "at least one"),
            ({"ids": ["1-1-1-8"], "limit": 2}, "give either ids or limit"),
            ({"ids": []}, "ids is empty"),
            ({"conditions": ["none", "none"]}, "each once"),
            ({"banks": {"none": "x.jsonl"}}, "take another"),
            ({"split": "nowhere"}, r"evaluation\.split"),
            ({"ids": ["0-0-0-0"]}, r"evaluation\.ids"),
            ({"conditions": ["none", "x"], "banks": {"x": "no-such-file.jsonl"}}, "no-such-file"),
        ],
    )
    def test_bad_input_is_named(self, tmp_path: Path, evaluation: Any, problem: str) -> None:
        with pytest.raises(ConfigError, match=problem):
            evaluate(config(evaluation=evaluation), tmp_path / "e")
        assert not (tmp_path / "e").exists()
