"""What rollouts say in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import median

from envharness_core import Episode, Trajectory
from envharness_core.posterior import wilson_interval

_FEW = 12  # numbers that are listed one by one
_WRONG = ("malformed", "blocked", "error", "transient_error")


def rate(episodes: Sequence[Episode]) -> str:
    """Return a success rate in words, with n."""
    wins, count = sum(episode.success for episode in episodes), len(episodes)
    if not count:
        return "no graded rollouts"
    low, high = wilson_interval(wins, count)
    return f"{wins} of {count} graded rollouts succeeded (95 % interval of the rate: {low:.2f} to {high:.2f})"


def counted(episodes: Sequence[Episode], trajectory: Callable[[Episode], Trajectory]) -> str:
    """Return statistics of rollouts, one a line."""
    played = [trajectory(episode) for episode in episodes]
    lines = [
        f"Success: {rate(episodes)}.",
        f"Steps of successes: {_spread(episode.steps for episode in episodes if episode.success)}.",
        f"Steps of failures: {_spread(episode.steps for episode in episodes if not episode.success)}.",
        f"Outcomes: {_tally(Counter(str(episode.outcome) for episode in episodes))}.",
        f"Calls: {_calls(played)}.",
        f"Last calls of successes: {_last(episodes, played, success=True)}.",
        f"Last calls of failures: {_last(episodes, played, success=False)}.",
        f"Steps that went wrong: {_wrong(played)}.",
    ]
    return "\n".join(f"- {line}" for line in lines)


def _spread(numbers: Iterable[int]) -> str:
    found = sorted(numbers)
    if len(found) <= _FEW:
        return ", ".join(map(str, found)) or "none"
    return f"{found[0]} to {found[-1]}, median {median(found):g}"


def _tally(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"


def _calls(played: Sequence[Trajectory]) -> str:
    calls: Counter[str] = Counter()
    users: Counter[str] = Counter()
    for trajectory in played:
        names = [step.action.name for step in trajectory.steps if step.action is not None]
        calls.update(names)
        users.update(set(names))
    used = sorted(calls.items(), key=lambda item: (-item[1], item[0]))
    return "; ".join(f"{name} {count} in {users[name]} rollouts" for name, count in used) or "none"


def _last(episodes: Sequence[Episode], played: Sequence[Trajectory], *, success: bool) -> str:
    """Count which tools rollouts end with."""
    ends = [
        "no tool call" if steps[-1].action is None else steps[-1].action.name
        for episode, trajectory in zip(episodes, played, strict=True)
        if episode.success is success and (steps := trajectory.steps)
    ]
    return _tally(Counter(ends))


def _wrong(played: Sequence[Trajectory]) -> str:
    infos = [step.response.info for trajectory in played for step in trajectory.steps]
    return _tally(Counter({key: count for key in _WRONG if (count := sum(key in info for info in infos))}))
