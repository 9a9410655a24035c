"""NappingAgent: your trained agent plus adaptation, with SB3's predict()."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import gymnasium
import msgspec
import numpy as np
from numpy.typing import NDArray

import nappingrl
from nappingrl.adaptation import ENDLESS_OPTIONS, AdaptationSpec, bare_domain
from nappingrl.agents import load as load_agent
from nappingrl.agents.base import Agent, check_fit
from nappingrl.agents.observations import are_equal, as_actions, as_batch, as_column, check_alike, length_of, take
from nappingrl.agents.observing import ObservingWrapper
from nappingrl.detectors import Detector
from nappingrl.domains import find_domain, trusted_domain
from nappingrl.errors import (
    BadAgentError,
    BadObservationError,
    BadSpecError,
    NappingError,
    UnknownNameError,
    check_name,
    did_you_mean,
)  # fmt: skip
from nappingrl.explain import ReadableRule, summarise_principles
from nappingrl.methods.base import check_saved
from nappingrl.notices import Notices
from nappingrl.registry import methods
from nappingrl.score import Eval, Score, as_score
from nappingrl.snapshot.file import (
    MAX_ENVS,
    MAX_SEED,
    SavedConfig,
    SavedModel,
    SavedSteps,
    Settings,
    read_saved,
    write_saved,
)
from nappingrl.types import Decision, DomainSpec, Rows, Transition

Array = NDArray[Any]
State = tuple[Array, ...] | None
AS_TRAINED = "as trained"
"""The name of the context before the novelty."""
_ARGUMENTS = ("model", "domain", "method", "score", "detector", "guard", "n_envs", "seed")


class NappingAgent:
    """A frozen agent that adapts: `predict` as in SB3, `observe` after every step.

    Examples:
        >>> import gymnasium, nappingrl
        >>> agent = nappingrl.NappingAgent("ppo", domain="cartpole", detector="given")
        >>> env = agent.wrap(gymnasium.make("nappingrl/CartPole-v0"))
        >>> observation, info = env.reset(seed=0, options={"params": {"force": -10.0}})
        >>> action, state = agent.predict(observation, deterministic=True)

    Args:
        model: a live SB3 model, the path of an SB3 zip, any `Agent`, or a shipped agent's name (with `domain`).
        domain: one of `napping list`, or the id of a gymnasium environment; brings defaults for everything else and
            the words of `explain`.
        method: one of `napping list`.
        score: the Eval: a `Score`, a name from the domain's table, or a function
            fn(obs, action, next_obs, reward, terminated) over batches. Default: the domain's, else the reward.
        detector: when to begin: a `Detector`, or a name: "given" (now), "residual", "rolling-mean", "never", ...
            Default: the method's, else the domain's, else given.
        guard: let the frozen agent take over where adaptation does not pay (`methods.guard` states its bound).
        n_envs: number of environments served side by side, each with its own principles.
        seed: seeds the random choice among candidates.
        method_options: options of the method, such as `rule="fallback"` or `choice="preference"`.

    `deterministic` is accepted by `predict` for SB3's sake; the trained agent always gives its greedy action.
    """

    def __init__(
        self,
        model: Any,
        *,
        domain: str | None = None,
        method: str = "napping",
        score: Score | Eval | str | None = None,
        detector: Detector | str | None = None,
        guard: bool = False,
        n_envs: int = 1,
        seed: int = 0,
        **method_options: Any,
    ) -> None:
        known = find_domain(domain) if domain else None
        self.agent: Agent = load_agent(model, domain)
        self.domain = known or bare_domain(self.agent)
        _check_sizes(self.agent, n_envs, seed)
        if domain:
            check_fit(self.agent, self.domain)
        elif isinstance(score, str):
            raise BadSpecError(f"score '{score}' is a name; names need domain=, else give a Score or a function")
        own_score, own_detector = as_score(score), detector if isinstance(detector, Detector) else None
        spec = _resolve(
            self.domain,
            AdaptationSpec(
                method,
                "" if own_score is not None else str(score or ""),
                str(detector or "") if own_detector is None else "",
                method_options,
                guard,
            ),
        )
        self._model_path = _path_of(model)
        self.n_envs = n_envs
        self.adaptation = spec.build(self.agent, self.domain, n_envs, own_score, own_detector)
        self.method, self.detector = self.adaptation.method, self.adaptation.detector
        self.config: dict[str, Any] = {
            "domain": domain,
            "method": method,
            "score": own_score.name if own_score is not None else spec.score,
            "own_score": own_score is not None,
            "detector": type(own_detector).__name__ if own_detector is not None else spec.detector,
            "own_detector": own_detector is not None,
            "options": dict(spec.options),
            "guard": guard,
            "n_envs": n_envs,
            "seed": seed,
        }
        self._notices = Notices(self.adaptation, method, self.config["detector"])
        self._rows = np.arange(n_envs)
        self._episodes = np.zeros(n_envs, np.int64)
        self._last: tuple[Any, Decision] | None = None  # the latest predict(): observations and decision
        self._is_fresh = np.zeros(n_envs, np.bool_)  # predicted and not yet observed
        self._names: dict[int, str] = {0: AS_TRAINED}
        keys = np.random.SeedSequence(seed).generate_state(n_envs, np.uint64).astype(np.uint64)
        self.adaptation.start(self._rows, keys, 0)
        self.adaptation.begin_episode(self._rows)

    def __repr__(self) -> str:
        """Model, method, context and number of regions, of the first environment."""
        regions = int(self.method.regions(self._rows[:1])[0][0])
        where = f", domain={self.domain.name!r}" if self.domain.name else ""
        return (
            f"NappingAgent({self.agent.name!r}{where}, method={self.config['method']!r}, "
            f"context={self._name(int(self.adaptation.contexts[0]))!r}, regions={regions}, n_envs={self.n_envs})"
        )

    @property
    def score(self) -> Score | None:
        """The Eval in use; None for a method that takes none."""
        return self.method.info.score

    @property
    def detected(self) -> NDArray[np.bool_]:
        """Per environment: whether the detector believes in a changed context."""
        return self.adaptation.detected(self._rows)

    @property
    def dropped(self) -> NDArray[np.int64]:
        """Per environment: the number of observed steps with bad numbers, which were left out."""
        return self.adaptation.filter.n_dropped.copy()

    def notes(self, env: int = 0) -> list[str]:
        """Why the agent does not adapt now, and what was left out, one line each; empty: nothing to report."""
        return list(self._notices.notes(env).values())

    # ------------------------------------------------------------------------------------------------- acting

    def predict(
        self,
        observation: Array | dict[str, Array],
        state: State = None,
        episode_start: Array | None = None,
        deterministic: bool = False,
    ) -> tuple[Array, State]:
        """The action to execute: 0-d for one observation, (n,) for a batch of n; and `state` unchanged.

        Continuous actions are (k,) for one observation and (n, k) for a batch.
        """
        batch, is_single = as_batch(self.agent, observation)
        rows, batch = self._rows_of(batch), deepcopy(batch)  # the caller may reuse its array
        actions, decision = self.adaptation.act(rows, batch)
        usable = self.adaptation.are_usable(rows, batch)
        if usable is not None:
            self._notices.warn_of(
                "observation", "an observation holds bad numbers; the frozen agent acts, with 0 there"
            )
        if usable is None or usable.any():
            self._last = batch, decision
            self._is_fresh[rows] = True
        self._notices.warn("detector", rows)
        return (np.array(actions[0]) if is_single else actions.copy()), state

    def observe(
        self,
        observation: Array | dict[str, Array],
        action: Any,
        next_observation: Array | dict[str, Array],
        reward: Any,
        terminated: Any,
        truncated: Any = False,
        env: int | None = None,
    ) -> None:
        """Learn from a step: of one environment (`env`, default 0), or of a batch of all."""
        batch, is_single = as_batch(self.agent, observation)
        next_batch, _ = as_batch(self.agent, next_observation)
        if not 0 <= (env or 0) < self.n_envs:
            raise BadSpecError(f"env={env} given, the agent serves n_envs={self.n_envs} environments")
        rows = np.array([env or 0]) if is_single else self._rows_of(batch)
        check_alike(batch, next_batch)
        actions = as_actions(self.agent, action, len(rows))
        rewards = as_column("reward", reward, np.float64, len(rows))
        terminated = as_column("terminated", terminated, np.bool_, len(rows))
        truncated = as_column("truncated", truncated, np.bool_, len(rows))
        ended = rows[terminated | truncated]
        accepted = self.adaptation.filter.accept(rows, batch, actions, next_batch, rewards)
        if accepted is not None:
            self._notices.warn("dropped", rows[~accepted])
            rows, batch, next_batch = rows[accepted], take(batch, accepted), take(next_batch, accepted)
            actions, rewards = as_actions(self.agent, actions[accepted], len(rows)), rewards[accepted]
            terminated, truncated = terminated[accepted], truncated[accepted]
        if len(rows):
            decision = self._decision(rows, batch)
            step = Transition(batch, decision, actions, next_batch, rewards, terminated, truncated)
            self.adaptation.learn(rows, step)
            self._is_fresh[rows] = False
        due = self._notices.count(rows)
        if len(due) or len(ended):
            self._notices.warn("method", np.concatenate([due, ended]))
        if len(ended):
            self._end_episodes(ended)

    def wrap(self, env: gymnasium.Env[Any, Any], index: int = 0) -> gymnasium.Env[Any, Any]:
        """The environment, wrapped so that every step is observed: evaluate_policy(agent, agent.wrap(env)) adapts."""
        if not isinstance(env, gymnasium.Env):
            raise BadSpecError(
                f"wrap takes a gymnasium.Env, not {type(env).__name__}: wrap each environment before vectorising it"
            )
        if not 0 <= index < self.n_envs:
            raise BadSpecError(f"index {index} given, the agent serves n_envs={self.n_envs} environments")
        return ObservingWrapper(env, self, index)

    def begin_episode(self, env: int = 0) -> None:
        """An environment was reset: forget its unfinished episode."""
        self._is_fresh[env] = False
        self.adaptation.discard_episode(np.array([env]))

    def explain(self, env: int = 0) -> list[ReadableRule]:
        """The principles learned so far as readable rules, the most visited first."""
        table = self.method.table(env)
        if not table:
            return []
        actions = self.domain.action_names or [f"action {a}" for a in range(self.agent.n_actions)]
        return summarise_principles(table, self.domain.describe, self.method.choice_names or actions)

    def describe_policy(self, env: int = 0) -> str:
        """The policy in force in words, where the method has one (foresight)."""
        return self.method.describe(env)

    # ----------------------------------------------------------------------------------------------- contexts

    def contexts(self, env: int = 0) -> dict[str, int]:
        """The contexts met so far by name, with the number of principles or policies learned in each."""
        sizes = {0: 0} | self.method.context_sizes(env)
        return {self._name(context): count for context, count in sizes.items()}

    def rename_context(self, old: str, new: str) -> None:
        """Give a context another name, such as "strong wind" instead of "novelty 1"."""
        by_name = self._by_name()
        if new in by_name:
            raise BadSpecError(f"a context is called '{new}' already; choose another name")
        self._names[by_name[check_name("context", old, by_name)]] = new

    def switch_to(self, name: str, env: int = 0) -> None:
        """Continue with what was learned in a context; "as trained" is the frozen agent, a new name starts afresh."""
        by_name = self._by_name()
        context = by_name.get(name, max(by_name.values()) + 1)
        self._names[context] = name
        self.adaptation.switch_context(env, context)

    def _name(self, context: int) -> str:
        return self._names.get(context, f"novelty {context}")

    def _by_name(self) -> dict[str, int]:
        """The contexts that any environment is in or remembers; the names of others are forgotten."""
        known = {0, *self.adaptation.contexts.tolist()}.union(*map(self.method.context_sizes, range(self.n_envs)))
        self._names = {context: name for context, name in self._names.items() if context in known}
        return {self._name(context): context for context in known}

    # ------------------------------------------------------------------------------------------ saving, loading

    def save(self, path: str | Path) -> Path:
        """Write a zip of JSON and npz (no pickle): settings, principles, and the base model by path and sha256."""
        check_saved(self.config["method"], self.config["options"])
        settings = Settings(
            agent=SavedModel(self.agent.name, self._model_path, self.agent.sha256),
            config=SavedConfig(**self.config),
            contexts=self.adaptation.contexts.tolist(),
            names=list(self._names.items()),
            episodes=self._episodes.tolist(),
            returns=self.adaptation.returns.tolist(),
            steps=[SavedSteps(*counts) for counts in self.adaptation.filter.counts()],
            nappingrl=nappingrl.__version__,
        )
        return write_saved(path, settings, self.adaptation.state())

    @classmethod
    def load(
        cls,
        path: str | Path,
        model: Any = None,
        score: Score | Eval | str | None = None,
        detector: Detector | str | None = None,
        domain: str | None = None,
    ) -> "NappingAgent":
        """Read what `save` wrote. The base model is found by its path unless given, and must have the same weights.

        The file is not trusted: all of it is checked, and "module:Env-v0" is imported only if given again as `domain`.
        """
        settings, arrays = read_saved(path)
        config, saved = settings.config, settings.agent
        model = saved.model if model is None else model
        if model is None:
            raise BadAgentError(f"{path} was saved with a live model, '{saved.name}'; give it as model=")
        for kind, given, is_own in (("score", score, config.own_score), ("detector", detector, config.own_detector)):
            if given is None and is_own:
                name = getattr(config, kind)
                raise BadAgentError(f"{path} was saved with your own {kind} '{name}'; give it as {kind}=")
        try:
            check_saved(config.method, config.options)
            agent = cls(
                model, domain=trusted_domain(config.domain, domain), method=config.method,
                score=score or (config.domain and config.score) or None, detector=detector or config.detector,
                guard=config.guard, n_envs=config.n_envs, seed=config.seed, **config.options,
            )  # fmt: skip
            if agent.agent.sha256 != saved.sha256:
                raise BadAgentError(f"it belongs to other weights than {saved.model or saved.name} has now")
            agent._restore(settings, arrays, with_detector=detector is None or config.own_detector)
        except NappingError as error:
            raise BadAgentError(f"{path} cannot be loaded: {error}") from error
        return agent

    def _restore(self, settings: Settings, arrays: dict[str, Array], with_detector: bool) -> None:
        self.adaptation.contexts[:], self._names = settings.contexts, dict(settings.names)
        self._episodes[:], self.adaptation.returns[:] = settings.episodes, settings.returns
        self.adaptation.filter.restore(msgspec.structs.astuple(steps) for steps in settings.steps)
        try:
            self.adaptation.restore(arrays, with_detector)
        except (LookupError, TypeError, ValueError, ArithmeticError) as error:  # of a method that checks nothing
            raise BadAgentError(f"its arrays do not fit ({' '.join(str(error).split())})") from error

    # ------------------------------------------------------------------------------------------------ internals

    def _rows_of(self, batch: Any) -> Rows:
        n = length_of(batch)
        if n > self.n_envs:
            raise BadObservationError(f"a batch of {n} observations was given; make the agent with n_envs={n}")
        return self._rows[:n]

    def _decision(self, rows: Rows, batch: Any) -> Decision:
        """What the agent wanted there: from the latest predict() if that was about it, else computed again."""
        if self._last is not None and self._is_fresh[rows].all():
            predicted, decision = self._last
            if len(decision.actions) > rows[-1] and are_equal(take(predicted, rows), batch):
                return Decision(decision.actions[rows], decision.model_states[rows], decision.preferences[rows])
        return self.adaptation.act(rows, batch)[1]

    def _end_episodes(self, rows: Rows) -> None:
        is_cut = self.adaptation.filter.is_dropped[rows]
        self._episodes[rows[~is_cut]] += 1
        self._is_fresh[rows[is_cut]] = False
        self.adaptation.end_episode(rows, self._episodes[rows])
        self.adaptation.begin_episode(rows)


def _resolve(domain: DomainSpec, spec: AdaptationSpec) -> AdaptationSpec:
    """The complete spec; a misspelt argument gets the nearest one."""
    options = {name for method in methods.names() for name in methods.get(method).options}
    for name in spec.options:
        hint = did_you_mean(name, [*_ARGUMENTS, *options])
        if name not in options and any(argument in hint for argument in _ARGUMENTS):
            raise UnknownNameError(f"unknown argument '{name}' of NappingAgent.{hint}")
    if methods.get(spec.method).is_privileged:
        raise BadSpecError(f"method '{spec.method}' needs the true parameters; it only runs in trials")
    return spec.resolve(domain, ENDLESS_OPTIONS)


def _check_sizes(agent: Agent, n_envs: int, seed: int) -> None:
    if not 1 <= n_envs <= MAX_ENVS or not 0 <= seed <= MAX_SEED:
        raise BadSpecError(
            f"n_envs={n_envs}, seed={seed} given; allowed: 1 to {MAX_ENVS} environments and seeds from 0 to {MAX_SEED}"
        )
    if not agent.embedding_dim or (not agent.n_actions and agent.action_low is None):
        raise BadAgentError(f"agent {agent.name} does not know its sizes yet: give TorchAgent its observation_shape=")


def _path_of(model: Any) -> str | None:
    """How a saved agent finds its model: a file's full path or a shipped agent's name; None for live objects."""
    if isinstance(model, str | Path):
        return str(Path(model).resolve()) if Path(model).exists() else str(model)
    return None
