"""One task's design: what is observed, tried, judged and confirmed, as a procedure over batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from attrs import define, evolve, frozen

from envharness_core.campaigns.asking import FaultError, asked, judged, say_plainly, sound, told
from envharness_core.campaigns.batch import Batch, Play, Rerolls, Rolled, roll
from envharness_core.campaigns.result import Status, TaskResult, diagnosis_json
from envharness_core.config import CampaignConfig
from envharness_core.data import TaskSummary
from envharness_core.designer import Attempt, Candidate, Designer, Diagnosis, Evidence, Offer, TaskHistory
from envharness_core.episode import Design, Episode, Limits
from envharness_core.errors import PLUGIN_FAULTS, EnvHarnessError, RulesError
from envharness_core.jsondata import JsonObject
from envharness_core.objective import Decision, Judgement, Objective, strictest
from envharness_core.outcome import Outcome
from envharness_core.seeds import derive
from envharness_core.spec import ComponentSpec
from envharness_core.tools import Tool
from envharness_core.trajectory import Trajectory

_SMOKE_STEPS = 30
_SMOKES = 3  # replays, all of which must have been blocked throughout to say that nothing gets through
UNLIMITED = 10**9
_MAYBE: Any = (Candidate, type(None))


@frozen
class Workshop:
    """What all tasks of a run share.

    Args:
        objective: the gate.
        designer: who writes candidates.
        config: how rollouts are spent.
        limits: what an episode may take.
        seed: the run's.
        tools, env_state_schema, designer_notes, resumable: the bridge's.
        layers: every installed layer, as a designer is shown it.
        demonstrator: a policy to learn a way from where the policy has none, or None.
        trajectory: loads an episode's trajectory.
        check: returns layers for a task with full names; raises an ``EnvHarnessError`` where they can't be built on
            the bridge.
    """

    objective: Objective
    designer: Designer
    config: CampaignConfig
    limits: Limits
    seed: int
    tools: tuple[Tool, ...]
    env_state_schema: str
    designer_notes: str
    resumable: bool
    layers: tuple[Offer, ...]
    demonstrator: ComponentSpec | None
    trajectory: Callable[[Episode], Trajectory]
    check: Callable[[str, Sequence[ComponentSpec]], tuple[ComponentSpec, ...]]


def design_task(
    shop: Workshop, task: TaskSummary, bare: Design, earlier: tuple[TaskHistory, ...]
) -> Play[TaskResult]:
    """Design one task: observe, diagnose, then try candidates until one is confirmed or nothing is left to try.

    In further rounds the same again, on top of what was accepted.
    """
    base, spent = bare, 0
    result: TaskResult | None = None
    for number in range(shop.config.rounds):
        latest = yield from design_round(shop, task, base, earlier, number, spent)
        result = joined(result, latest)
        if latest.status != "accepted":
            break
        base, spent = bare.under(latest.layers), latest.rollouts
    return cast("TaskResult", result)


def design_round(
    shop: Workshop,
    task: TaskSummary,
    base: Design,
    earlier: tuple[TaskHistory, ...],
    number: int,
    spent: int,
) -> Play[TaskResult]:
    """Do one round of a task.

    Args:
        shop: what all tasks share.
        task: the task.
        base: the stack so far.
        earlier: finished tasks.
        number: the round's, from 0.
        spent: design rollouts that earlier rounds took.
    """
    return (yield from _Round(shop, task, base, earlier, number, spent).play())


def joined(before: TaskResult | None, latest: TaskResult) -> TaskResult:
    """Return what became of a task after a further round: what was accepted stays, and all that was tried is kept."""
    if before is None:
        return latest
    kept = latest if latest.status == "accepted" else before
    attempts = (*before.history.attempts, *latest.history.attempts)
    return evolve(kept, rollouts=latest.rollouts, history=evolve(kept.history, attempts=attempts))


def evidence_of(
    shop: Workshop,
    task: TaskSummary,
    base: Design,
    baseline: tuple[Episode, ...],
    demonstrations: tuple[Episode, ...] = (),
    earlier: tuple[TaskHistory, ...] = (),
    budget: int = UNLIMITED,
) -> Evidence:
    """Return what a designer is shown of a task whose baseline, at least one rollout, was played on ``base``.

    Raises:
        FaultError: the objective broke.
    """
    start = shop.trajectory(baseline[0]).start
    return Evidence(
        task=task,
        instruction=start.instruction if start else "",
        tools=shop.tools,
        env_state_schema=shop.env_state_schema,
        layers=shop.layers,
        objective=shop.objective.summary,
        band=shop.objective.band,
        limits=shop.limits,
        baseline=baseline,
        demonstrations=demonstrations,
        trajectory=shop.trajectory,
        earlier=earlier,
        budget=budget,
        reserve=asked(shop.objective.confirm, Judgement, baseline, (), ()).rollouts,
        seed=derive("designer", shop.seed, task.id, base.key),
        bridge=base.bridge,
        below=base.layers,
        resumable=shop.resumable,
        designer_notes=shop.designer_notes,
    )


@define
class _Round:
    """One round: from a baseline on the stack so far to an accepted candidate, or to none."""

    shop: Workshop
    task: TaskSummary
    base: Design
    earlier: tuple[TaskHistory, ...]
    number: int
    spent: int
    attempts: tuple[Attempt, ...] = ()
    baseline: tuple[Episode, ...] = ()

    def play(self) -> Play[TaskResult]:
        """Observe, diagnose, and try candidates; a designer or objective that breaks costs its task, not the run."""
        try:
            return (yield from self._played())
        except FaultError as fault:
            return evolve(self._result("abandoned", str(fault), self.baseline), fault=True)

    def _played(self) -> Play[TaskResult]:
        config = self.shop.config
        observed = yield from self._roll(self.base, "baseline", Rolled(), config.rollouts)
        if len(observed.graded) < config.rollouts:
            return self._result("abandoned", f"no baseline: {_excluded(observed)}", observed.graded)
        self.baseline = observed.graded
        demonstrations = yield from self._demonstrated(observed.graded)
        evidence = self._evidence(observed.graded, demonstrations)
        designer = self.shop.designer
        diagnosis = yield from told(designer, designer.diagnose, Diagnosis, evidence)
        say_plainly("Diagnosis", designer, diagnosis_json(diagnosis))
        result = yield from self._designed(evidence, diagnosis)
        return evolve(result, history=evolve(result.history, diagnosis=diagnosis))

    def _designed(self, evidence: Evidence, diagnosis: Diagnosis) -> Play[TaskResult]:
        designer, baseline = self.shop.designer, evidence.baseline
        if diagnosis.direction == "leave":
            unchanged = yield from self._rolled_out(
                Attempt(Candidate((), "unchanged")), self.base, "unchanged", evidence, diagnosis
            )
            if unchanged.decision is Decision.ACCEPT:
                return self._result("kept", _word(unchanged), baseline)
        for number in range(self.shop.config.attempts):
            if self._left <= 0:
                return self._result("abandoned", "the budget is spent", baseline)
            candidate = yield from told(
                designer, designer.propose, _MAYBE, self._now(evidence), diagnosis, self.attempts
            )
            if candidate is None:
                return self._result("abandoned", "the designer has nothing more to propose", baseline)
            candidate = sound(designer, candidate)
            attempt = yield from self._tried(candidate, str(number), evidence, diagnosis)
            if attempt.decision is Decision.ACCEPT:
                layers = (*self.base.layers, *attempt.candidate.layers)
                return self._result("accepted", _word(attempt), baseline, layers)
        return self._result("abandoned", "the attempts are used up", baseline)

    def _tried(
        self, candidate: Candidate, name: str, evidence: Evidence, diagnosis: Diagnosis
    ) -> Play[Attempt]:
        """Check one candidate, and roll it out if it is worth that; either way it has been tried."""
        candidate, problem = self._looked_at(candidate)
        design = self.base.under((*self.base.layers, *candidate.layers))
        if not problem:
            problem = yield from self._smoke(design, name, evidence.baseline)
        attempt = Attempt(candidate, rejected=problem)
        if problem:
            self.attempts = (*self.attempts, attempt)
            return attempt
        return (yield from self._rolled_out(attempt, design, name, evidence, diagnosis))

    def _rolled_out(
        self, attempt: Attempt, design: Design, name: str, evidence: Evidence, diagnosis: Diagnosis
    ) -> Play[Attempt]:
        """Validate, judge and confirm, and add the attempt to what was tried."""
        attempt = yield from self._validated(attempt, design, name, evidence, diagnosis)
        if attempt.decision is Decision.ACCEPT:
            attempt = yield from self._confirmed(attempt, design, name, evidence, diagnosis)
        self.attempts = (*self.attempts, attempt)
        return attempt

    def _validated(
        self, attempt: Attempt, design: Design, name: str, evidence: Evidence, diagnosis: Diagnosis
    ) -> Play[Attempt]:
        """Roll out until gate and designer have made up their minds."""
        rolled = Rolled()
        while True:
            gate = judged(self.shop.objective.judge, evidence.baseline, rolled.graded)
            attempt = evolve(attempt, episodes=rolled.graded, judgement=gate, decision=gate.decision)
            attempt = yield from self._reviewed(attempt, evidence, diagnosis)
            if attempt.decision is not Decision.MORE:
                return attempt
            wanted = min(gate.rollouts, self._left)
            if wanted <= 0:
                return _given_up(attempt, f"undecided when the budget was spent: {gate.reason}")
            before = rolled
            rolled = yield from self._roll(design, f"attempt {name}", rolled, wanted)
            problem = _problem(before, rolled, wanted)
            if problem:
                return evolve(attempt, decision=Decision.REJECT, rejected=problem)

    def _confirmed(
        self, attempt: Attempt, design: Design, name: str, evidence: Evidence, diagnosis: Diagnosis
    ) -> Play[Attempt]:
        """Judge an accepted candidate again on a stream of its own, which may still refuse it."""
        rolled = Rolled()
        while True:
            gate = judged(self.shop.objective.confirm, evidence.baseline, attempt.episodes, rolled.graded)
            attempt = evolve(attempt, confirmation=rolled.graded, judgement=gate, decision=gate.decision)
            if rolled.graded:
                attempt = yield from self._reviewed(attempt, evidence, diagnosis)
            if attempt.decision is not Decision.MORE:
                return attempt
            missing = max(gate.rollouts, evidence.reserve - len(rolled.graded))
            if gate.decision is Decision.MORE and missing > self._left:
                return _given_up(attempt, f"the budget allows no confirmation: {gate.reason}")
            wanted = min(gate.rollouts, self._left)
            before = rolled
            rolled = yield from self._roll(design, f"confirm {name}", rolled, wanted)
            problem = _problem(before, rolled, wanted)
            if problem:
                return evolve(attempt, decision=Decision.REJECT, rejected=problem)

    def _reviewed(self, attempt: Attempt, evidence: Evidence, diagnosis: Diagnosis) -> Play[Attempt]:
        """Let the designer tighten the gate's word on rollouts that it has seen."""
        gate = cast("Judgement", attempt.judgement)
        if not attempt.episodes or gate.decision not in (Decision.ACCEPT, Decision.MORE):
            return attempt
        designer = self.shop.designer
        now = self._now(evidence)
        word = yield from told(designer, designer.review, Decision, now, diagnosis, self.attempts, attempt)
        decision = strictest(gate.decision, word)
        if decision is Decision.MORE and min(gate.rollouts, self._left) <= 0:
            decision = Decision.REFINE
        return evolve(attempt, decision=decision)

    def _smoke(self, design: Design, name: str, baseline: Sequence[Episode]) -> Play[str]:
        """Replay a baseline rollout's actions on the candidate; return what breaks, or an empty text."""
        longest = max(baseline, key=lambda episode: (episode.steps, -episode.index))
        steps = self.shop.trajectory(longest).steps[:_SMOKE_STEPS]
        actions: list[JsonObject] = [
            {"name": step.action.name, "kwargs": step.action.kwargs} for step in steps if step.action
        ]
        if not actions:
            return ""
        script = ComponentSpec("core/scripted", {"actions": list(actions), "repeat": True})
        replay = evolve(design, policy=script, limits=Limits(steps=len(actions)))
        for index in range(_SMOKES):
            (episode,) = yield Batch(replay, self._stream(f"smoke {name}"), (index,))
            if episode.outcome is Outcome.RULES_ERROR:
                return f"a layer broke: {episode.error}"
            replayed = self.shop.trajectory(episode).steps
            if not replayed or not all("blocked" in step.response.info for step in replayed):
                return ""  # what blocks by chance gets another try
        return "it blocks every action of a baseline rollout, so nobody can solve it"

    def _looked_at(self, candidate: Candidate) -> tuple[Candidate, str]:
        """Return a candidate with full names, and why it isn't worth a rollout, or an empty text."""
        if not candidate.layers:
            return candidate, "the candidate is empty"
        try:
            layers = self.shop.check(self.task.id, (*self.base.layers, *candidate.layers))
        except EnvHarnessError as error:
            return candidate, error.told() if isinstance(error, RulesError) else str(error)
        except PLUGIN_FAULTS as error:
            return candidate, f"it can't be built: {type(error).__name__}: {error}"
        candidate = evolve(candidate, layers=layers[len(self.base.layers) :])
        if any(attempt.candidate.key == candidate.key for attempt in self.attempts):
            return candidate, "the candidate equals an earlier one"
        return candidate, ""

    def _demonstrated(self, baseline: Sequence[Episode]) -> Play[tuple[Episode, ...]]:
        """Have the demonstrator play until it wins, where there is one and the policy never won."""
        demonstrator = self.shop.demonstrator
        if demonstrator is None or any(episode.success for episode in baseline):
            return ()
        design = evolve(self.base, policy=demonstrator)
        rolled = Rolled()
        for _ in range(self.shop.config.demonstrations):
            rolled = yield from self._roll(design, "demonstration", rolled, 1)
            if rolled.graded and rolled.graded[-1].success:
                break
        return rolled.graded

    def _roll(self, design: Design, stream: str, rolled: Rolled, wanted: int) -> Play[Rolled]:
        """Roll out, and charge the task for it."""
        after = yield from roll(design, self._stream(stream), rolled, wanted, self._rerolls)
        self.spent += len(after.played) - len(rolled.played)
        return after

    def _evidence(self, baseline: tuple[Episode, ...], demonstrations: tuple[Episode, ...]) -> Evidence:
        return evidence_of(
            self.shop, self.task, self.base, baseline, demonstrations, self.earlier, self._left
        )

    @property
    def _rerolls(self) -> Rerolls:
        return Rerolls(self.shop.config.rerolls, self.shop.config.backoff)

    def _now(self, evidence: Evidence) -> Evidence:
        return evolve(evidence, budget=self._left)

    @property
    def _left(self) -> int:
        budget = self.shop.config.budget
        return UNLIMITED if budget is None else budget - self.spent

    def _stream(self, name: str) -> str:
        return name if self.number == 0 else f"{name} of round {self.number}"

    def _result(
        self,
        status: Status,
        reason: str,
        baseline: tuple[Episode, ...],
        layers: tuple[ComponentSpec, ...] | None = None,
    ) -> TaskResult:
        history = TaskHistory(self.task, baseline, self.attempts)
        stack = self.base.layers if layers is None else layers
        return TaskResult(status, stack, reason, self.spent, history)


def _problem(before: Rolled, after: Rolled, wanted: int) -> str:
    """Say why a batch gives no judgement, or return an empty text."""
    if after.broken is not None:
        return f"a layer broke: {after.broken.error}"
    if len(after.graded) < len(before.graded) + wanted:
        return f"not evaluated: {_excluded(after)}"
    return ""


def _given_up(attempt: Attempt, reason: str) -> Attempt:
    return evolve(attempt, decision=Decision.REFINE, rejected=reason)


def _word(attempt: Attempt) -> str:
    return cast("Judgement", attempt.judgement).reason


def _excluded(rolled: Rolled) -> str:
    outcomes = sorted(str(episode.outcome) for episode in rolled.excluded)
    first = next((episode.error for episode in rolled.excluded if episode.error), "")
    counted = ", ".join(f"{outcomes.count(name)} {name}" for name in dict.fromkeys(outcomes))
    return f"{len(rolled.graded)} graded, excluded: {counted}; {first}"
