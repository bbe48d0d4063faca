"""One task's design: what is observed, tried, judged and confirmed, as a procedure over batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from attrs import evolve, frozen

from envharness_core.campaigns.batch import Batch, Play, Rolled, roll
from envharness_core.campaigns.result import TaskResult
from envharness_core.config import CampaignConfig
from envharness_core.data import TaskSummary
from envharness_core.designer import Attempt, Candidate, Designer, Diagnosis, Evidence, TaskHistory
from envharness_core.episode import Design, Episode, Limits
from envharness_core.errors import EnvHarnessError
from envharness_core.jsondata import JsonObject
from envharness_core.objective import Decision, Judgement, Objective, strictest
from envharness_core.outcome import Outcome
from envharness_core.seeds import derive
from envharness_core.spec import ComponentSpec
from envharness_core.tools import Tool
from envharness_core.trajectory import Trajectory

_SMOKE_STEPS = 30


@frozen
class Workshop:
    """What all tasks of a run share."""

    objective: Objective
    designer: Designer
    config: CampaignConfig
    limits: Limits
    seed: int
    tools: tuple[Tool, ...]
    env_state_schema: str
    layers: tuple[tuple[str, str], ...]
    demonstrator: ComponentSpec | None
    trajectory: Callable[[Episode], Trajectory]
    check: Callable[[Sequence[ComponentSpec]], None]
    """Raises an ``EnvHarnessError`` where layers can't be built on the bridge."""


@frozen
class _Round:
    """A round's start: the stack so far, what the designer is shown and what it makes of it."""

    number: int
    base: Design
    evidence: Evidence
    diagnosis: Diagnosis
    spent: int


def design_task(
    shop: Workshop, task: TaskSummary, bare: Design, earlier: tuple[TaskHistory, ...]
) -> Play[TaskResult]:
    """Design one task: observe, diagnose, then try candidates until one is confirmed or nothing is left to try."""
    result = yield from _one_round(shop, task, bare, earlier, 0, 0)
    for number in range(1, shop.config.rounds):
        if result.status != "accepted":
            break
        further = yield from _one_round(
            shop, task, bare.under(result.layers), earlier, number, result.rollouts
        )
        history = evolve(result.history, attempts=(*result.history.attempts, *further.history.attempts))
        kept = further if further.status == "accepted" else result
        result = evolve(kept, history=history, rollouts=further.rollouts)
    return result


def _one_round(
    shop: Workshop,
    task: TaskSummary,
    base: Design,
    earlier: tuple[TaskHistory, ...],
    number: int,
    spent: int,
) -> Play[TaskResult]:
    config = shop.config
    observed = yield from roll(base, _stream("baseline", number), Rolled(), config.rollouts, config.rerolls)
    spent += len(observed.played)
    history = TaskHistory(task, observed.graded, ())
    if len(observed.graded) < config.rollouts:
        reason = f"no baseline: {_excluded(observed)}"
        return TaskResult("abandoned", base.layers, reason, spent, history)
    shown: tuple[Episode, ...] = ()
    if shop.demonstrator is not None and not any(episode.success for episode in observed.graded):
        demonstrated = evolve(base, policy=shop.demonstrator)
        stream = _stream("demonstration", number)
        rolled = yield from roll(demonstrated, stream, Rolled(), 1, config.rerolls)
        shown, spent = rolled.graded, spent + len(rolled.played)
    evidence = _evidence(shop, task, base, observed.graded, shown, earlier, spent)
    diagnosis = shop.designer.diagnose(evidence)
    start = _Round(number, base, evidence, diagnosis, spent)
    if diagnosis.direction == "leave":
        result = yield from _keep(shop, start, history)
    else:
        result = yield from _attempts(shop, start, history)
    return evolve(result, diagnosis=diagnosis)


def _keep(shop: Workshop, start: _Round, history: TaskHistory) -> Play[TaskResult]:
    """Ask the gate whether the task is in order as it is."""
    attempt = Attempt(Candidate((), "unchanged"))
    attempt, spent = yield from _tried(shop, start, history, attempt, "keep", start.spent)
    status = "kept" if attempt.decision is Decision.ACCEPT else "abandoned"
    reason = attempt.judgement.reason if attempt.judgement else attempt.rejected
    history = evolve(history, attempts=(attempt,))
    return TaskResult(status, start.base.layers, reason, spent, history)  # type: ignore[arg-type]


def _attempts(shop: Workshop, start: _Round, history: TaskHistory) -> Play[TaskResult]:
    spent = start.spent
    reason = "the attempts are used up"
    for number in range(shop.config.attempts):
        if _left(shop, spent) <= 0:
            reason = "the budget is spent"
            break
        candidate = shop.designer.propose(
            evolve(start.evidence, budget=_left(shop, spent)), start.diagnosis, history.attempts
        )
        if candidate is None:
            reason = "the designer has nothing more to propose"
            break
        attempt = Attempt(candidate, rejected=_refused(shop, start.base, candidate, history.attempts))
        if not attempt.rejected:
            name = f"{number}"
            attempt, spent = yield from _tried(shop, start, history, attempt, name, spent)
        history = evolve(history, attempts=(*history.attempts, attempt))
        if attempt.decision is Decision.ACCEPT:
            layers = (*start.base.layers, *candidate.layers)
            accepted = cast("Judgement", attempt.judgement).reason
            return TaskResult("accepted", layers, accepted, spent, history)
    return TaskResult("abandoned", start.base.layers, reason, spent, history)


def _tried(
    shop: Workshop, start: _Round, history: TaskHistory, attempt: Attempt, name: str, spent: int
) -> Play[tuple[Attempt, int]]:
    """Smoke-test, validate, judge and confirm one candidate; return it judged, and the rollouts spent so far."""
    design = start.base.under((*start.base.layers, *attempt.candidate.layers))
    if attempt.candidate.layers:
        problem = yield from _smoke(shop, start, design, name)
        if problem:
            return evolve(attempt, rejected=problem), spent
    rolled = Rolled()
    while True:
        gate = shop.objective.judge(start.evidence.baseline, rolled.graded)
        attempt = evolve(attempt, episodes=rolled.graded, judgement=gate, decision=gate.decision)
        attempt = _reviewed(shop, start, history, attempt, spent)
        if attempt.decision is not Decision.MORE:
            break
        stream = _stream(f"attempt {name}", start.number)
        before = len(rolled.played)
        attempt, rolled = yield from _further(shop, design, stream, attempt, rolled, spent)
        spent += len(rolled.played) - before
        if attempt.rejected:
            return attempt, spent
    if attempt.decision is Decision.ACCEPT:
        attempt, spent = yield from _confirmed(shop, start, design, attempt, name, spent)
    return attempt, spent


def _further(
    shop: Workshop, design: Design, stream: str, attempt: Attempt, rolled: Rolled, spent: int
) -> Play[tuple[Attempt, Rolled]]:
    """Roll out as many more as the gate wants; an attempt whose batch stays incomplete comes back rejected."""
    gate = cast("Judgement", attempt.judgement)
    wanted = min(gate.rollouts, _left(shop, spent))
    if wanted <= 0:
        reason = f"undecided when the budget was spent: {gate.reason}"
        return evolve(attempt, decision=Decision.REFINE, rejected=reason), rolled
    target = len(rolled.graded) + wanted
    rolled = yield from roll(design, stream, rolled, wanted, shop.config.rerolls)
    if rolled.broken is not None:
        reason = f"a layer broke: {rolled.broken.error}"
    elif len(rolled.graded) < target:
        reason = f"not evaluated: {_excluded(rolled)}"
    else:
        return attempt, rolled
    return evolve(attempt, decision=Decision.REJECT, rejected=reason), rolled


def _confirmed(
    shop: Workshop, start: _Round, design: Design, attempt: Attempt, name: str, spent: int
) -> Play[tuple[Attempt, int]]:
    """Judge an accepted candidate again on a stream of its own, which may still refuse it."""
    rolled = Rolled()
    stream = _stream(f"confirm {name}", start.number)
    while True:
        gate = shop.objective.confirm(start.evidence.baseline, attempt.episodes, rolled.graded)
        attempt = evolve(attempt, confirmation=rolled.graded, judgement=gate, decision=gate.decision)
        if gate.decision is not Decision.MORE:
            return attempt, spent
        before = len(rolled.played)
        if gate.rollouts > _left(shop, spent):
            reason = f"the budget allows no confirmation: {gate.reason}"
            return evolve(attempt, decision=Decision.REFINE, rejected=reason), spent
        attempt, rolled = yield from _further(shop, design, stream, attempt, rolled, spent)
        spent += len(rolled.played) - before
        if attempt.rejected:
            return attempt, spent


def _reviewed(shop: Workshop, start: _Round, history: TaskHistory, attempt: Attempt, spent: int) -> Attempt:
    """Let the designer tighten the gate's word on rollouts that it has seen."""
    gate = cast("Judgement", attempt.judgement)
    if not attempt.episodes or gate.decision not in (Decision.ACCEPT, Decision.MORE):
        return attempt
    evidence = evolve(start.evidence, budget=_left(shop, spent))
    word = shop.designer.review(evidence, start.diagnosis, history.attempts, attempt)
    decision = strictest(gate.decision, word)
    if decision is Decision.MORE and gate.rollouts <= 0:
        decision = Decision.REFINE
    return evolve(attempt, decision=decision)


def _smoke(shop: Workshop, start: _Round, design: Design, name: str) -> Play[str]:
    """Replay a baseline rollout's actions on the candidate; return what breaks, or an empty text."""
    longest = max(start.evidence.baseline, key=lambda episode: (episode.steps, -episode.index))
    steps = shop.trajectory(longest).steps[:_SMOKE_STEPS]
    actions: list[JsonObject] = [
        {"name": step.action.name, "kwargs": step.action.kwargs} for step in steps if step.action
    ]
    if not actions:
        return ""
    script: JsonObject = {"actions": list(actions), "repeat": True}
    replay = evolve(
        design,
        policy=ComponentSpec("core/scripted", script),
        limits=Limits(steps=len(actions)),
    )
    (episode,) = yield Batch(replay, _stream(f"smoke {name}", start.number), (0,))
    return f"a layer broke: {episode.error}" if episode.outcome is Outcome.RULES_ERROR else ""


def _refused(shop: Workshop, base: Design, candidate: Candidate, history: Sequence[Attempt]) -> str:
    """Say why a candidate isn't worth a rollout, or return an empty text."""
    if not candidate.layers:
        return "the candidate is empty"
    if any(attempt.candidate.key == candidate.key for attempt in history):
        return "the candidate equals an earlier one"
    try:
        shop.check((*base.layers, *candidate.layers))
    except EnvHarnessError as error:
        return str(error)
    return ""


def _evidence(
    shop: Workshop,
    task: TaskSummary,
    base: Design,
    baseline: tuple[Episode, ...],
    demonstrations: tuple[Episode, ...],
    earlier: tuple[TaskHistory, ...],
    spent: int,
) -> Evidence:
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
        budget=_left(shop, spent),
        seed=derive("designer", shop.seed, task.id, base.key),
    )


def _left(shop: Workshop, spent: int) -> int:
    return 10**9 if shop.config.budget is None else shop.config.budget - spent


def _stream(name: str, number: int) -> str:
    return name if number == 0 else f"{name} of round {number}"


def _excluded(rolled: Rolled) -> str:
    outcomes = sorted(str(episode.outcome) for episode in rolled.excluded)
    first = next((episode.error for episode in rolled.excluded if episode.error), "")
    counted = ", ".join(f"{outcomes.count(name)} {name}" for name in dict.fromkeys(outcomes))
    return f"{len(rolled.graded)} graded, excluded: {counted}; {first}"
