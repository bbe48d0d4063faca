"""The config of a run: a TOML file, checked before anything is written or played."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from attrs import Factory, evolve, field, frozen, validators

from envharness_core.account import Budget
from envharness_core.component import Kind
from envharness_core.converter import structure, unstructure
from envharness_core.episode import Limits
from envharness_core.errors import ConfigError, DataError
from envharness_core.jsondata import Json, JsonObject, copy_object
from envharness_core.kinds import BRIDGE, DESIGNER, EMBEDDER, EXECUTOR, EXTRACTOR, OBJECTIVE, POLICY
from envharness_core.plugins import Plugins
from envharness_core.sandbox.config import SandboxConfig
from envharness_core.spec import ComponentSpec

CONFIG_VERSION = 1

_PLACES = ("executor", "sandbox", "cache", "budget", "settings")
_LATER = ("evaluation",)  # what is done with a run afterwards
_LEARNING = ("extractor", "embedder", "skills")
_PATIENCE = ("backoff", "max_excluded")

CONDITIONS = ("none", "original", "reshaped")
"""What a policy can be given in an evaluation without naming a bank: nothing, or skills that are learnt for it."""

_MOST = 1_000_000  # of anything that is rolled out: beyond it, a number is a slip of the finger
_COUNT = [validators.ge(0), validators.le(_MOST)]
_POSITIVE = [validators.ge(1), validators.le(_MOST)]
_SHARE = [validators.ge(0.0), validators.le(1.0)]


@frozen
class TaskSelection:
    """Which tasks a run is about.

    Args:
        split: the bridge's split.
        limit: the first so many of it; None for all.
        ids: these tasks of the split instead, in this order.
    """

    split: str = "train"
    limit: int | None = field(default=None, validator=validators.optional(validators.and_(*_POSITIVE)))
    ids: tuple[str, ...] | None = None

    def __attrs_post_init__(self) -> None:
        if self.ids is not None and not self.ids:
            raise ValueError("ids is empty; leave it out to take the whole split")
        if self.ids is not None and self.limit is not None:
            raise ValueError("give either ids or limit")


@frozen
class CampaignConfig:
    """How a campaign spends its rollouts.

    Args:
        rollouts: K, baseline rollouts a task.
        attempts: R, candidates a task and round.
        rounds: how often a task's accepted stack is taken as the new start.
        budget: design rollouts a task may take in all, baseline and confirmation included; None for no limit.
        demonstrations: rollouts of the demonstrator at most, on a task that the policy never won.
        rerolls: how many failed episodes of a batch are made up for by further ones.
        backoff: seconds before the first of these where the infrastructure failed; twice as long each time, a minute
            at most.
        max_excluded: the share of a session's episodes, at least 20, beyond which it stops early because the
            infrastructure fails too often.
        wave: how many tasks are designed at a time; a wave's designs learn from finished waves only, so that results
            don't depend on which worker was faster.
    """

    rollouts: int = field(default=5, validator=_POSITIVE)
    attempts: int = field(default=5, validator=_POSITIVE)
    rounds: int = field(default=1, validator=_POSITIVE)
    budget: int | None = field(default=None, validator=validators.optional(validators.and_(*_POSITIVE)))
    demonstrations: int = field(default=5, validator=_COUNT)
    rerolls: int = field(default=3, validator=_COUNT)
    backoff: float = field(default=1.0, validator=[validators.ge(0.0), validators.le(3600.0)])
    max_excluded: float = field(default=0.5, validator=[validators.ge(0.0), validators.le(1.0)])
    wave: int = field(default=20, validator=_POSITIVE)

    def __attrs_post_init__(self) -> None:
        if self.budget is not None and self.budget < self.rollouts:
            raise ValueError(f"budget must be at least rollouts: {self.budget} < {self.rollouts}")


@frozen
class ReportConfig:
    """What is measured on fresh seeds after the design, for the report alone.

    Args:
        rollouts: n, rollouts a task on the unchanged task, and as many on its accepted stack.
        weaker, stronger: policies that are compared on the accepted stacks; None for no comparison.
        sensitivity: rollouts a stack of each of these two.
        layer_seeds: how many layer seeds are held fixed, each for ``per_seed`` rollouts; 0 for none.
        per_seed: rollouts with one layer seed, at least 2.
    """

    rollouts: int = field(default=0, validator=_COUNT)
    weaker: ComponentSpec | None = None
    stronger: ComponentSpec | None = None
    sensitivity: int = field(default=20, validator=_POSITIVE)
    layer_seeds: int = field(default=0, validator=_COUNT)
    per_seed: int = field(default=5, validator=[validators.ge(2), validators.le(_MOST)])


@frozen
class SkillsConfig:
    """How skills are learnt from rollouts, and given to a policy.

    Args:
        rollouts: rollouts of an environment that its skills are learnt from, at most.
        per_task: skills of an environment, at most.
        capacity: skills of a bank, at most.
        retrieve: skills that a policy is given for a task, at most.
        threshold: the similarity to the task, in [0, 1], below which a skill isn't given.
        diversity: how much a skill that says the same as a better one is passed over, in [0, 1]; 0 ranks by similarity
            alone.
        coevolve: whether a campaign's policy is given the skills of finished waves; see ``campaign.rounds``.
    """

    rollouts: int = field(default=5, validator=_POSITIVE)
    per_task: int = field(default=3, validator=_POSITIVE)
    capacity: int = field(default=1000, validator=_POSITIVE)
    retrieve: int = field(default=3, validator=_POSITIVE)
    threshold: float = field(default=0.0, validator=_SHARE)
    diversity: float = field(default=0.3, validator=_SHARE)
    coevolve: bool = False


@frozen
class EvaluationConfig:
    """How skills are evaluated on the untouched benchmark: one attempt a task and run, under every condition.

    Args:
        split: the bridge's split that is held out.
        limit: the first so many tasks of it; None for all.
        ids: these tasks of the split instead.
        runs: R, independent runs.
        conditions: which banks the policy is given: ``none``; ``original``, learnt on the untouched environments;
            ``reshaped``, learnt on the stacks that a campaign accepted; or a name in ``banks``.
        banks: further banks, as ``{condition: file}``; a file's config means files beside it.
        seal: a file, likewise, in which every scoring of this split is logged. Where it is given, the split is scored
            only when that is asked for in so many words, and only once.
    """

    split: str = "test"
    limit: int | None = field(default=None, validator=validators.optional(validators.and_(*_POSITIVE)))
    ids: tuple[str, ...] | None = None
    runs: int = field(default=3, validator=_POSITIVE)
    conditions: tuple[str, ...] = ("none", "original", "reshaped")
    banks: dict[str, str] = Factory(dict)
    seal: str | None = None

    def __attrs_post_init__(self) -> None:
        known = (*CONDITIONS, *self.banks)
        for name in self.conditions:
            if name not in known:
                raise ValueError(f"conditions: unknown condition {name!r}; known: {', '.join(known)}")
        if len(set(self.conditions)) < len(self.conditions) or not self.conditions:
            raise ValueError("conditions must name at least one, and each once")
        taken = [name for name in self.banks if name in CONDITIONS]
        if taken:
            raise ValueError(f"banks: {taken[0]!r} is the name of a condition that is learnt; take another")

        TaskSelection(self.split, self.limit, self.ids)  # which says what is wrong with these

    @property
    def tasks(self) -> TaskSelection:
        """The held-out tasks."""
        return TaskSelection(self.split, self.limit, self.ids)


@frozen
class RunConfig:
    """A whole run.

    Args:
        bridge: the benchmark.
        policy: who plays.
        version: of this format.
        seed: what all randomness of the run is derived from.
        tasks: which tasks.
        limits: what an episode may take.
        objective: the gate.
        designer: who writes the layers.
        demonstrator: a policy whose wins a designer may build on where the policy has none; None for none.
        campaign: how rollouts are spent.
        report: what is measured afterwards.
        extractor: who makes skills of rollouts.
        embedder: how skills are compared with tasks; None by their words.
        skills: how they are learnt and given.
        evaluation: how they are evaluated on the untouched benchmark.
        budget: what may be used of models. Changes no result.
        settings: what plugins are told that changes no result, such as keys and limits, as ``{plugin: settings}``.
        executor: where episodes are played; changes no result.
        sandbox: how rules that are given as source code run; changes no result.
        cache: a folder in which runs share their baselines; None for none. Changes no result.
        plugins: further plugins as ``{name: importable module}``.
    """

    bridge: ComponentSpec
    policy: ComponentSpec
    version: int = CONFIG_VERSION
    seed: int = field(default=0, validator=[validators.ge(0), validators.lt(2**63)])
    tasks: TaskSelection = Factory(TaskSelection)
    limits: Limits = Factory(Limits)
    objective: ComponentSpec = Factory(lambda: ComponentSpec("core/success_band"))
    designer: ComponentSpec = Factory(lambda: ComponentSpec("core/catalog"))
    demonstrator: ComponentSpec | None = None
    campaign: CampaignConfig = Factory(CampaignConfig)
    report: ReportConfig = Factory(ReportConfig)
    extractor: ComponentSpec = Factory(lambda: ComponentSpec("core/contrast"))
    embedder: ComponentSpec | None = None
    skills: SkillsConfig = Factory(SkillsConfig)
    evaluation: EvaluationConfig = Factory(EvaluationConfig)
    budget: Budget = Factory(Budget)
    settings: dict[str, JsonObject] = Factory(dict)
    executor: ComponentSpec = Factory(lambda: ComponentSpec("core/local"))
    sandbox: SandboxConfig = Factory(SandboxConfig)
    cache: str | None = None
    plugins: dict[str, str] = Factory(dict)

    def as_json(self) -> JsonObject:
        """Return the config as plain data."""
        return unstructure(self)

    def identity(self) -> JsonObject:
        """Return what decides the campaign's results: not where it is played, nor how long it waits for what failed.

        How skills are learnt belongs to it only where they are given to the policy within the campaign.
        """
        told: Any = self.as_json()
        campaign = {key: value for key, value in told["campaign"].items() if key not in _PATIENCE}
        left_out = (*_PLACES, *_LATER, *(() if self.skills.coevolve else _LEARNING))
        return {key: value for key, value in told.items() if key not in left_out} | {"campaign": campaign}


def read_config(path: Path, overrides: Sequence[str] = ()) -> RunConfig:
    """Read a config from a TOML file.

    Args:
        path: the file.
        overrides: ``a.b=value`` each, with the value in TOML; a word that isn't TOML is text.

    Raises:
        ConfigError: the file can't be read, is from a newer version, or has a wrong key or value.
    """
    try:
        data: JsonObject = copy_object(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except (ValueError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from error
    for override in overrides:
        override_key(data, override)
    told = cast("JsonObject", _with_files(data, path.parent, ""))
    return _beside(make_config(told, str(path)), path.parent)


def _beside(config: RunConfig, folder: Path) -> RunConfig:
    """Return a config whose banks and seal are looked for beside its file, wherever it is read from."""
    told = config.evaluation
    banks = {name: str(folder / bank) for name, bank in told.banks.items()}
    seal = None if told.seal is None else str(folder / told.seal)
    return evolve(config, evaluation=evolve(told, banks=banks, seal=seal))


def _with_files(value: Json, folder: Path, where: str) -> Json:
    """Return plain data in which each table ``{from_file = "name"}`` is the text of that file.

    Raises:
        ConfigError: a file can't be read.
    """
    if isinstance(value, list):
        return [_with_files(item, folder, f"{where}[{index}]") for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if set(value) == {"from_file"}:
        name = value["from_file"]
        if not isinstance(name, str) or not name.strip() or "\0" in name:
            raise ConfigError(f"{where}.from_file: expected a file's name, got {name!r:.80}")
        return _text_of(folder / name, where)
    return {key: _with_files(item, folder, f"{where}.{key}".lstrip(".")) for key, item in value.items()}


def _text_of(path: Path, where: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{where}.from_file: {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}.from_file: {path}: not UTF-8 ({error.reason})") from error


def make_config(data: JsonObject, where: str = "config") -> RunConfig:
    """Make a config of plain data.

    Raises:
        ConfigError: it is from a newer version, or has a wrong key or value.
    """
    version = data.get("version", CONFIG_VERSION)
    if isinstance(version, int) and version > CONFIG_VERSION:
        raise ConfigError(
            f"{where}.version: {version} is newer than {CONFIG_VERSION}, what this version reads; "
            "upgrade envharness-core"
        )
    if version != CONFIG_VERSION:
        raise ConfigError(f"{where}.version: expected {CONFIG_VERSION}, got {version!r}")
    return structure(data, RunConfig, where)


def resolve(config: RunConfig, plugins: Plugins) -> RunConfig:
    """Check every component that a config names, and write full names and all defaults into it.

    Raises:
        ConfigError: an unknown component or key, or a value that isn't allowed.
        PluginError: a plugin that it names is broken.
    """

    def full(kind: Kind[Any], spec: ComponentSpec, where: str) -> ComponentSpec:
        found = plugins.find(kind, spec.use, where)
        return ComponentSpec(found.full_name, unstructure(found.configure(spec.config, where)))

    def maybe(spec: ComponentSpec | None, where: str) -> ComponentSpec | None:
        return None if spec is None else full(POLICY, spec, where)

    if config.bridge.use.endswith(".json"):
        raise ConfigError(
            "bridge: a campaign designs on a benchmark's own tasks; a reshaped benchmark is for tasks and rollout"
        )
    for name in config.plugins:
        plugins.load(name)
    return evolve(
        config,
        bridge=full(BRIDGE, config.bridge, "bridge"),
        policy=full(POLICY, config.policy, "policy"),
        objective=full(OBJECTIVE, config.objective, "objective"),
        designer=full(DESIGNER, config.designer, "designer"),
        demonstrator=maybe(config.demonstrator, "demonstrator"),
        executor=full(EXECUTOR, config.executor, "executor"),
        extractor=full(EXTRACTOR, config.extractor, "extractor"),
        embedder=None if config.embedder is None else full(EMBEDDER, config.embedder, "embedder"),
        report=evolve(
            config.report,
            weaker=maybe(config.report.weaker, "report.weaker"),
            stronger=maybe(config.report.stronger, "report.stronger"),
        ),
    )


def override_key(data: JsonObject, override: str) -> None:
    """Set a key of a config's plain data.

    Args:
        data: the config, changed in place.
        override: ``a.b=value``, with the value in TOML; a word that isn't TOML is text.

    Raises:
        ConfigError: it has another form, or a key on the way is no table.
    """
    path, equals, text = override.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise ConfigError(f"--set {override}: expected a.b=value")
    table: Any = data
    for key in keys[:-1]:
        table = table.setdefault(key, {})
        if isinstance(table, str):
            raise ConfigError(f"--set {override}: {key} is a name; write it as a table with use = ...")
        if not isinstance(table, dict):
            raise ConfigError(f"--set {override}: {key} is not a table")
    try:
        table[keys[-1]] = _parsed(text.strip())
    except DataError as error:
        raise ConfigError(f"{path.strip()}: {error.problem}") from error


def _parsed(text: str) -> Any:
    try:
        return copy_object(cast("Any", tomllib.loads(f"value = {text}")))["value"]
    except tomllib.TOMLDecodeError:
        return text
