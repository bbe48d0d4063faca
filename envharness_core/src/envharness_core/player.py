"""The player: plays episodes in this process, and turns whatever happens into an outcome."""

from __future__ import annotations

import traceback
from collections import OrderedDict
from contextlib import suppress
from typing import Any

from attrs import define, field

from envharness_core.checked import malformed
from envharness_core.clock import EpisodeClock, ticking
from envharness_core.data import Action, StepResponse, Verdict
from envharness_core.episode import Episode, EpisodeSpec, Record
from envharness_core.errors import (
    PLUGIN_FAULTS,
    AccessError,
    BridgeError,
    CancelledError,
    ConfigError,
    ContextError,
    DataError,
    EnvHarnessError,
    ProviderError,
    RulesError,
    SandboxError,
    VerifierError,
)
from envharness_core.jsondata import JsonObject, copy_object
from envharness_core.kinds import POLICY
from envharness_core.outcome import GRADED, Outcome
from envharness_core.plugins import Plugins
from envharness_core.policy import Ask, Policy, Reply
from envharness_core.recordable import recordable
from envharness_core.stacks import Stack, build_stack
from envharness_core.trajectory import TrajectoryWriter

_HANGS = 2.0  # seconds beyond the limit, after which it isn't a slow step any more
_WARM = 8  # stacks and policies that are kept open for the next episode


@define
class _Ending(Exception):  # noqa: N818 - not every ending is an error
    """An episode's end, with or without an error behind it."""

    outcome: Outcome
    error: str = ""
    stop: str = ""


@define
class _Play:
    """An episode in progress."""

    spec: EpisodeSpec
    stack: Stack
    policy: Policy
    writer: TrajectoryWriter
    clock: EpisodeClock
    policy_seconds: float = 0.0
    env_seconds: float = 0.0
    asking: bool = False
    """Whether the policy has the word."""
    usage: JsonObject = field(factory=dict)


class Player:
    """Plays episodes one after another, keeping the stacks and policies that it made warm.

    An episode never raises: failures are outcomes. A stack or a policy that failed is closed and made anew.
    """

    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins
        self._stacks: OrderedDict[str, Stack] = OrderedDict()
        self._policies: OrderedDict[str, Policy] = OrderedDict()
        self._current: _Play | None = None

    def play(self, spec: EpisodeSpec) -> Record:
        """Play one episode and return it with its trajectory."""
        try:
            stack, policy = self._made(spec)
        except _Ending as ending:
            return Record(_episode(spec, ending, None), TrajectoryWriter(()).blob(), ending.stop)
        writer = TrajectoryWriter([r.log for r in stack.chain.recorders()])
        with ticking() as clock:
            self._current = play = _Play(spec, stack, policy, writer, clock)
            played, verdict = _played(play)
            self._current = None
        if verdict is None:
            self._drop(spec)
        else:
            self._rest(spec, stack)
        return Record(_episode(spec, played, verdict, play), play.writer.blob(), played.stop)

    def overdue(self) -> Record | None:
        """Return the record of an episode that hangs, for another thread to hand in; None where none does.

        It hangs where it is past its limit on the clock by more than a step should take. It keeps its steps; where
        the policy has the word it is a ``timeout``, else the environment's error. This process is then past mending.
        """
        play = self._current
        limit = None if play is None else play.spec.design.limits.wall_seconds
        if play is None or limit is None or play.clock.elapsed < limit + _HANGS:
            return None
        outcome = Outcome.TIMEOUT if play.asking else Outcome.ENV_ERROR
        who = "the policy" if play.asking else "the environment"
        ending = _Ending(outcome, f"{who} hangs: the episode took longer than {limit:g} seconds")
        return Record(_episode(play.spec, ending, None, play), play.writer.blob())

    def close(self) -> None:
        """Release every stack and policy; idempotent."""
        while self._stacks:
            _close(self._stacks.popitem()[1])
        while self._policies:
            _close(self._policies.popitem()[1])

    def __enter__(self) -> Player:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _made(self, spec: EpisodeSpec) -> tuple[Stack, Policy]:
        try:
            stack = self._stack(spec)
        except PLUGIN_FAULTS as error:
            outside = isinstance(error, BridgeError | SandboxError | ConfigError)
            outcome = Outcome.ENV_ERROR if outside else Outcome.RULES_ERROR
            raise _Ending(outcome, _said(error)) from error
        try:
            return stack, self._policy(spec)
        except PLUGIN_FAULTS as error:
            if isinstance(error, ProviderError):
                raise _failed_provider(error) from error
            raise _Ending(Outcome.POLICY_ERROR, _said(error)) from error

    def _stack(self, spec: EpisodeSpec) -> Stack:
        design = spec.design
        key = design.stack_key
        if key not in self._stacks:
            self._stacks[key] = build_stack(self._plugins, design.bridge, design.layers)
            _evict(self._stacks)
        self._stacks.move_to_end(key)
        return self._stacks[key]

    def _policy(self, spec: EpisodeSpec) -> Policy:
        key = spec.design.policy_key
        if key not in self._policies:
            self._policies[key] = self._plugins.create(POLICY, spec.design.policy, "policy")
            _evict(self._policies)
        self._policies.move_to_end(key)
        return self._policies[key]

    def _rest(self, spec: EpisodeSpec, stack: Stack) -> None:
        try:
            stack.rest()
        except PLUGIN_FAULTS:  # the episode is graded: what fails afterwards costs the stack, not the episode
            _close(self._stacks.pop(spec.design.stack_key, None))

    def _drop(self, spec: EpisodeSpec) -> None:
        _close(self._stacks.pop(spec.design.stack_key, None))
        _close(self._policies.pop(spec.design.policy_key, None))


def _played(play: _Play) -> tuple[_Ending, Verdict | None]:
    try:
        ending = _loop(play)
    except _Ending as ended:
        if ended.outcome not in GRADED:
            return ended, None
        ending = ended
    except ProviderError as error:
        return _failed_provider(error), None
    except SandboxError as error:
        return _Ending(Outcome.ENV_ERROR, _said(error)), None
    except BridgeError as error:
        outcome = Outcome.VERIFIER_ERROR if isinstance(error, VerifierError) else Outcome.ENV_ERROR
        return _Ending(outcome, _said(error)), None
    except PLUGIN_FAULTS as error:
        return _Ending(Outcome.RULES_ERROR, _said(error)), None
    return _graded(play, ending)


def _failed_provider(error: ProviderError) -> _Ending:
    """A service failed the episode; one that refuses whoever asks ends the run."""
    said = _clipped(str(error))
    return _Ending(Outcome.PROVIDER_ERROR, said, said if isinstance(error, AccessError) else "")


def _graded(play: _Play, ending: _Ending) -> tuple[_Ending, Verdict | None]:
    try:
        return ending, play.stack.evaluate()
    except EnvHarnessError as error:
        return _Ending(Outcome.VERIFIER_ERROR, _said(error)), None


def _loop(play: _Play) -> _Ending:
    spec, stack = play.spec, play.stack
    seeds, design = spec.seeds, spec.design
    options: JsonObject = {"task": design.task, "layer_seed": seeds.layers}
    first = stack.reset(seeds.env, options)
    play.writer.start(first)
    if play.policy.privileged:
        _ask(play, play.policy.consult, _oracle(play), stack.solutions)
    _ask(play, play.policy.start, first.instruction, stack.tools(), seeds.policy, design.skills)
    observation = first.observation
    while True:
        reply, seconds = _replied(play, observation)
        written = _ask(play, recordable, reply)
        for number in range(max(1, len(reply.actions))):
            response = _step(play, reply, written, number, seconds if number == 0 else 0.0)
            if response.terminated:
                return _Ending(Outcome.COMPLETED)
            if response.truncated or len(play.writer) >= design.limits.steps:
                return _Ending(Outcome.AGENT_LIMIT)
        observation = response.observation
        _require_time(play)
        if design.limits.seconds is not None and play.policy_seconds > design.limits.seconds:
            return _Ending(Outcome.TIMEOUT)


def _require_time(play: _Play) -> None:
    limit = play.spec.design.limits.wall_seconds
    if limit is not None and play.clock.elapsed > limit:
        raise _Ending(Outcome.TIMEOUT, f"the episode took longer than {limit:g} seconds")


def _replied(play: _Play, observation: Any) -> tuple[Reply, float]:
    before = play.policy_seconds
    reply = _checked_reply(_ask(play, play.policy.act, observation))
    for key, amount in reply.usage.items():
        if isinstance(amount, int | float):
            play.usage[key] = amount + play.usage.get(key, 0)  # type: ignore[operator]
    return reply, play.policy_seconds - before


def _checked_reply(reply: object) -> Reply:
    """Return a reply that can be counted and written down; what its actions hold is the guard's business."""
    if not isinstance(reply, Reply) or not isinstance(reply.actions, tuple):
        raise _Ending(
            Outcome.POLICY_ERROR, f"act must return a Reply with a tuple of actions, got {reply!r:.200}"
        )
    if not all(isinstance(action, Action) for action in reply.actions) or not isinstance(reply.text, str):
        raise _Ending(Outcome.POLICY_ERROR, f"a Reply holds Actions and a text, got {reply!r:.200}")
    try:
        usage = copy_object(reply.usage, "usage")
    except DataError as error:
        raise _Ending(Outcome.POLICY_ERROR, f"the reply's {error}") from error
    text = _told(reply.text)
    return Reply(reply.actions, text, usage, _told(reply.problem))


def _told(text: object) -> str:
    """Return a text that can be encoded."""
    text = str(text)
    return text if text.isascii() else text.encode(errors="replace").decode()


def _step(play: _Play, reply: Reply, written: Reply, number: int, policy_seconds: float) -> StepResponse:
    began, marks = play.clock.elapsed, play.stack.marks()
    if reply.actions:
        response = play.stack.step(reply.actions[number])
    else:
        response = malformed(play.stack.observe(), reply.problem or "the reply holds no tool call")
    env_seconds = play.clock.elapsed - began
    play.env_seconds += env_seconds
    response, dense = _with_dense_reward(play.stack, marks, response)
    last = response.ended or len(play.writer) + 1 >= play.spec.design.limits.steps
    seconds = (policy_seconds, env_seconds)
    play.writer.step(
        written,
        number,
        response,
        raw=play.stack.emitted(response),
        dense=dense,
        seconds=seconds,
        last=last,
    )
    return response


def _with_dense_reward(
    stack: Stack, marks: tuple[int, ...], response: StepResponse
) -> tuple[StepResponse, float | None]:
    """Ask for the dense reward of what the bridge itself said of the step; there is none where nothing reached it."""
    try:
        info = stack.info_since(marks)
        return response, None if info is None else stack.step_reward(info)
    except Exception as error:  # noqa: BLE001 - recorded, never fatal
        noted = {**response.info, "step_reward_error": f"{type(error).__name__}: {error}"}
        return StepResponse(
            response.observation, response.reward, response.terminated, response.truncated, noted
        ), None


def _ask(play: _Play, call: Any, *args: object) -> Any:
    began = play.clock.elapsed
    play.asking = True
    try:
        return call(*args)
    except (ProviderError, _Ending):
        raise
    except ContextError as error:
        raise _Ending(Outcome.AGENT_LIMIT, f"the agent's context is full: {error}") from error
    except CancelledError as error:
        raise _Ending(Outcome.CANCELLED, str(error), str(error)) from error
    except PLUGIN_FAULTS as error:
        raise _Ending(Outcome.POLICY_ERROR, _said(error)) from error
    finally:
        play.asking = False
        play.policy_seconds += play.clock.elapsed - began


def _oracle(play: _Play) -> Ask:
    """Return what a privileged policy asks the bridge by; whatever fails or hangs in there is the environment's."""

    def ask(way: str) -> tuple[Action, ...] | None:
        play.asking = False
        try:
            return play.stack.solution(way)
        except BridgeError as error:
            raise _Ending(Outcome.ENV_ERROR, _said(error)) from error
        finally:
            play.asking = True

    return ask


def _episode(
    spec: EpisodeSpec, ending: _Ending, verdict: Verdict | None, play: _Play | None = None
) -> Episode:
    return Episode(
        key=spec.key,
        task=spec.design.task,
        stream=spec.stream,
        index=spec.index,
        outcome=ending.outcome,
        verdict=verdict,
        steps=len(play.writer) if play else 0,
        seconds=play.policy_seconds + play.env_seconds if play else 0.0,
        usage=play.usage if play else {},
        error=ending.error,
    )


def _evict(warm: OrderedDict[str, Any]) -> None:
    while len(warm) > _WARM:
        _close(warm.popitem(last=False)[1])


def _close(thing: Stack | Policy | None) -> None:
    if thing is not None:
        with suppress(*PLUGIN_FAULTS):  # what fails to close has been dropped already
            thing.close()


def _said(error: BaseException) -> str:
    """Say what happened, and where: the innermost frames of the traceback, or of rules their author's own lines."""
    try:
        head = str(error) if isinstance(error, EnvHarnessError) else f"{type(error).__name__}: {error}"
    except PLUGIN_FAULTS:
        head = f"{type(error).__name__}, which can't be printed"
    if isinstance(error, RulesError) and error.__cause__ is None:
        return _clipped(error.told())
    cause = error.__cause__ or error
    frames = traceback.extract_tb(cause.__traceback__)[-3:]
    where = "; ".join(f"{frame.name} ({frame.filename}:{frame.lineno})" for frame in frames)
    return _clipped(f"{head} [{where}]" if where else head)


def _clipped(text: str) -> str:
    return text[:4000].encode(errors="replace").decode()
