"""The report's own rollouts: played after the design, on fresh seeds; they select nothing."""

from __future__ import annotations

from attrs import evolve

from envharness_core.campaigns.batch import Batch, Play
from envharness_core.campaigns.result import TaskResult
from envharness_core.config import ReportConfig, RunConfig
from envharness_core.episode import Design


def report_rollouts(report: ReportConfig, *, accepted: bool) -> int:
    """Return how many rollouts of the ``report`` streams a task takes."""
    if not accepted:
        return report.rollouts
    compared = sum(policy is not None for policy in (report.weaker, report.stronger))
    return 2 * report.rollouts + compared * report.sensitivity + report.layer_seeds * report.per_seed


def report_plays(config: RunConfig, result: TaskResult, bare: Design) -> list[Play[None]]:
    """Return the rollouts of the ``report`` streams for a designed task: none of them selects anything."""
    report = config.report
    after = bare.under(result.layers)
    plays = []
    if report.rollouts:
        plays.append(_rollouts(bare, "report before", report.rollouts))
        if result.status == "accepted":
            plays.append(_rollouts(after, "report after", report.rollouts))
    if result.status != "accepted":
        return plays
    for name, policy in (("weaker", report.weaker), ("stronger", report.stronger)):
        if policy is not None:
            other = evolve(after, policy=policy)
            plays.append(_rollouts(other, f"report {name}", report.sensitivity))
    if report.layer_seeds:
        count = report.layer_seeds * report.per_seed
        plays.append(_rollouts(after, "report seeds", count, share=report.per_seed))
    return plays


def _rollouts(design: Design, stream: str, count: int, share: int = 1) -> Play[None]:
    yield Batch(design, stream, tuple(range(count)), later=True, share=share)
