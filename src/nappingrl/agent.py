"""NappingAgent: a trained agent of yours plus adaptation principles, with SB3's predict()."""

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

import nappingrl
from nappingrl.agents import load as load_agent
from nappingrl.agents.base import Agent, check_fit
from nappingrl.agents.observations import are_equal, as_batch, as_column, describe_signs, length_of, take
from nappingrl.detectors import Detector
from nappingrl.domains import find_domain
from nappingrl.errors import BadAgentError, BadObservationError, BadSpecError, check_name
from nappingrl.explain import ReadableRule, summarise_principles
from nappingrl.methods.base import Method, MethodInfo, read_options
from nappingrl.methods.frozen import Frozen
from nappingrl.methods.guard import guarded
from nappingrl.observed import ObservingWrapper
from nappingrl.registry import detectors, methods
from nappingrl.score import Eval, Score, reward_score
from nappingrl.snapshot import read_saved, write_saved
from nappingrl.types import Decision, Rows, Transition, with_prefix

Array = NDArray[Any]
State = tuple[Array, ...] | None
AS_TRAINED = "as trained"
"""The name of the world before the novelty."""


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
        score: the Eval: a `Score`, a name from the domain's table, or a function
            fn(obs, action, next_obs, reward, terminated) over batches. Default: the domain's, else the reward.
        detector: when to begin: a `Detector`, or "given" (now), "rolling-mean" (the domain's), "never".
            Default: the domain's, else given.
        domain: one of `napping list`; brings defaults for score, detector, rule, space and the words of `explain`.
        method, options: one of `napping list`, with its options, such as {"choice": "preference"}.
        guard: let the frozen agent take over where adaptation does not pay (`methods.guard` states its bound).
        n_envs: how many environments are served side by side. Each has principles of its own.
        seed: of the random choice among candidates.

    `deterministic` is accepted by `predict` for SB3's sake; the trained agent is always asked for its greedy action.
    """

    def __init__(
        self,
        model: Any,
        *,
        score: Score | Eval | str | None = None,
        detector: Detector | str | None = None,
        domain: str | None = None,
        method: str = "napping",
        rule: str | None = None,
        space: str | None = None,
        options: Mapping[str, Any] | None = None,
        guard: bool = False,
        n_envs: int = 1,
        seed: int = 0,
    ) -> None:
        self._domain = find_domain(domain) if domain else None
        self.agent: Agent = load_agent(model, domain)
        if self._domain is not None:
            facts = self._domain.facts()
            shape, limits = facts.observation_low.shape, (facts.action_low, facts.action_high)
            check_fit(self.agent, self._domain.name, shape, facts.n_actions, *limits)
        if n_envs < 1 or seed < 0:
            raise BadSpecError(f"n_envs={n_envs}, seed={seed} given; at least 1 environment and a seed >= 0 are needed")
        if not self.agent.embedding_dim or (not self.agent.n_actions and self.agent.action_low is None):
            raise BadAgentError(
                f"agent {self.agent.name} does not know its sizes yet: give TorchAgent its observation_shape="
            )
        self._reference = _reference(model)
        self.n_envs = n_envs
        self.score = self._score(score)
        defaults = self._domain.defaults if self._domain else None
        self.config: dict[str, Any] = {
            "domain": domain,
            "score": self.score.name,
            "own_score": score is not None and not isinstance(score, str),
            "detector": type(detector).__name__ if isinstance(detector, Detector) else detector,
            "own_detector": isinstance(detector, Detector),
            "method": method,
            "rule": rule or (defaults.rule if defaults else "revised"),
            "space": space or (defaults.space if defaults else "embedding"),
            "guard": guard,
            "n_envs": n_envs,
            "seed": seed,
        }
        kind: type[Method] = methods.get(method)
        self.config["options"] = read_options(method, kind, options or {})
        if kind.privileged:
            raise BadSpecError(f"method '{method}' needs the world's true parameters; it only runs in trials")
        self.method = (guarded(kind) if guard else kind)(self.agent, self._info(), n_envs)
        self.detector = self._detector(detector)
        self._rows = np.arange(n_envs)
        self._returns = np.zeros(n_envs)
        self._episodes = np.zeros(n_envs, np.int64)
        self._last: tuple[Any, Decision] | None = None  # what predict() last saw and decided
        self._is_fresh = np.zeros(n_envs, np.bool_)  # predicted and not yet observed
        stream = np.random.SeedSequence(seed)
        self.method.start(self._rows, stream.generate_state(n_envs, np.uint64).astype(np.uint64))
        self._world = np.zeros(n_envs, np.int64)
        self._names: dict[int, str] = {0: AS_TRAINED}
        self.detector.start(self._rows, 0)
        self._notice(self._rows)

    @property
    def detected(self) -> NDArray[np.bool_]:
        """Per environment: is the world believed to be another than before."""
        return self._world > 0

    # ------------------------------------------------------------------------------------------------- acting

    def predict(
        self,
        observation: Array | dict[str, Array],
        state: State = None,
        episode_start: Array | None = None,
        deterministic: bool = False,
    ) -> tuple[Array, State]:
        """The action to execute: 0-d for one observation, (n,) for a batch of n, and the state as it came.

        Where actions are numbers, (k,) for one observation and (n, k) for a batch.
        """
        batch, is_single = as_batch(self.agent, observation)
        rows = self._rows_of(batch)
        decision = self.method.forward(rows, batch)
        actions = self.method.act(rows, batch, decision)
        self._last, self._is_fresh[rows] = (deepcopy(batch), decision), True
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
        """Tell what came of a step: for one environment (`env`, default 0), or for a batch of all."""
        batch, is_single = as_batch(self.agent, observation)
        following, _ = as_batch(self.agent, next_observation)
        if not 0 <= (env or 0) < self.n_envs:
            raise BadSpecError(f"env={env} given, the agent serves n_envs={self.n_envs} environments")
        rows = np.array([env or 0]) if is_single else self._rows_of(batch)
        transition = Transition(
            batch,
            self._decision(rows, batch),
            self._actions(action, len(rows)),
            following,
            as_column("reward", reward, np.float64, len(rows)),
            as_column("terminated", terminated, np.bool_, len(rows)),
            as_column("truncated", truncated, np.bool_, len(rows)),
        )
        if length_of(following) != len(rows):
            raise BadObservationError(
                f"{len(rows)} observations but {length_of(following)} next observations were given"
            )
        self._returns[rows] += transition.rewards
        self.detector.step(rows, transition)
        self._notice(rows)
        self.method.learn(rows, transition, self.detected[rows])
        self._is_fresh[rows] = False
        ended = transition.terminated | transition.truncated
        if ended.any():
            self._end_episodes(rows[ended])

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
        """An environment was reset: what its unfinished episode had earned is forgotten."""
        self._returns[env], self._is_fresh[env] = 0.0, False
        rows = np.array([env])
        self.method.discard_episode(rows)
        self.detector.discard_episode(rows)

    def explain(self, env: int = 0) -> list[ReadableRule]:
        """The principles learned so far as readable rules, the most visited first."""
        table = self.method.table(env)
        if not table:
            return []
        describe = self._domain.describe if self._domain is not None else describe_signs
        names = self._domain.action_names if self._domain is not None else ()
        choices = self.method.choice_names or names or [f"action {a}" for a in range(self.agent.n_actions)]
        return summarise_principles(table, describe, choices)

    def describe_policy(self, env: int = 0) -> str:
        """The rule in force in words, where the method has one (foresight)."""
        return self.method.describe(env)

    # ------------------------------------------------------------------------------------------- known worlds

    def contexts(self, env: int = 0) -> dict[str, int]:
        """What was learned for each world it has met: by the world's name, how many principles or rules."""
        return {self._name(world): count for world, count in self.method.context_sizes(env).items()}

    def rename_context(self, old: str, new: str) -> None:
        """Give a world another name, such as "strong wind" instead of "novelty 1"."""
        if new in self._names.values():
            raise BadSpecError(f"a world is called '{new}' already; choose another name")
        self._names[self._world_called(old)] = new

    def switch_to(self, name: str, env: int = 0) -> None:
        """Go on with what was learned for a world; "as trained" is the agent's own policy, a new name begins afresh."""
        known = {self._name(world) for world in self.method.context_sizes(env)} | set(self._names.values())
        if name not in known:
            self._names[max([*self._names, *self.method.context_sizes(env)], default=0) + 1] = name
        self.detector.context[env] = self._world_called(name)
        self._notice(np.array([env]))

    def _name(self, world: int) -> str:
        return self._names.setdefault(world, f"novelty {world}")

    def _world_called(self, name: str) -> int:
        for env in range(self.n_envs):
            for world in self.method.context_sizes(env):
                self._name(world)
        by_name = {called: world for world, called in self._names.items()}
        return by_name[check_name("world", name, by_name)]

    # ------------------------------------------------------------------------------------------ saving, loading

    def save(self, path: str | Path) -> Path:
        """Write a zip of JSON and npz (no pickle): settings, principles, and the base model by path and sha256."""
        if type(self.method).state is Method.state and not isinstance(self.method, Frozen):
            raise BadSpecError(
                f"method '{self.config['method']}' cannot be saved; allowed: napping, napping-ucb, foresight, frozen"
            )
        settings = {
            "nappingrl": nappingrl.__version__,
            "agent": {"name": self.agent.name, "model": self._reference, "sha256": self.agent.sha256},
            "config": self.config,
            "worlds": self._world.tolist(),
            "names": [[world, name] for world, name in self._names.items()],
            "episodes": self._episodes.tolist(),
            "returns": self._returns.tolist(),
        }
        tables = {f"detector/{name}": array for name, array in self.detector.state().items()}
        tables |= {f"method/{name}": array for name, array in self.method.state().items()}
        return write_saved(path, settings, tables)

    @classmethod
    def load(
        cls,
        path: str | Path,
        model: Any = None,
        score: Score | Eval | str | None = None,
        detector: Detector | str | None = None,
    ) -> "NappingAgent":
        """Read what `save` wrote. The base model is found by its path unless given, and must have the same weights."""
        settings, tables = read_saved(path)
        config, saved = settings["config"], settings["agent"]
        if model is None:
            model = saved["model"]
        if model is None:
            raise BadAgentError(f"{path} was saved with a live model, '{saved['name']}'; give it as model=")
        for name, given in (("score", score), ("detector", detector)):
            if given is None and config[f"own_{name}"]:
                raise BadSpecError(f"{path} was saved with the {name} '{config[name]}' of your own; give it as {name}=")
        if score is None and config["domain"]:
            score = config["score"]
        keywords = {
            name: config[name] for name in ("domain", "method", "rule", "space", "options", "guard", "n_envs", "seed")
        }
        agent = cls(model, score=score, detector=detector or config["detector"], **keywords)
        if agent.agent.sha256 != saved["sha256"]:
            raise BadAgentError(f"{path} belongs to other weights than {saved['model'] or saved['name']} has now")
        try:
            agent._restore(settings, tables, with_detector=detector is None or config["own_detector"])
        except (KeyError, ValueError) as error:
            raise BadAgentError(f"{path} is damaged ({error}); save it again") from error
        return agent

    # ------------------------------------------------------------------------------------------------ internals

    def _restore(self, settings: dict[str, Any], tables: dict[str, Array], with_detector: bool) -> None:
        self._world[:], self._episodes[:] = settings["worlds"], settings["episodes"]
        self._returns[:] = settings["returns"]
        self._names = {int(world): str(name) for world, name in settings["names"]}
        if with_detector:
            self.detector.restore(with_prefix("detector/", tables))
        self.method.restore(with_prefix("method/", tables))

    def _score(self, score: Score | Eval | str | None) -> Score:
        if isinstance(score, Score):
            return score
        if callable(score):
            return Score(getattr(score, "__name__", "custom"), score)
        if self._domain is None:
            if score is not None:
                raise BadSpecError(f"score '{score}' is a name; names need domain=, else give a Score or a function")
            return reward_score()
        found: Score = self._domain.scores[
            check_name("score", score or self._domain.defaults.score, self._domain.scores)
        ]
        return found

    def _detector(self, detector: Detector | str | None) -> Detector:
        if isinstance(detector, Detector):
            return detector
        if self._domain is not None:
            name = detector or type(self.method).detector or self._domain.defaults.detector
            made: Detector = self._domain.make_detector(name, self.n_envs)
            return made
        if detector == "rolling-mean":
            raise BadSpecError(
                "detector 'rolling-mean' needs limits: give detect.RollingMean(n_envs, low=..., high=...)"
            )
        kind: type[Detector] = detectors.get(detector or "given")
        if kind.needs_domain:
            raise BadSpecError(
                f"detector '{detector}' must know the world's spaces: give domain=, or an env id as domain="
            )
        return kind(self.n_envs)

    def _info(self) -> MethodInfo:
        shape = self.agent.observation_shape or ()
        centre, scale = np.zeros(shape), np.ones(shape)
        if self._domain is not None:
            centre, scale = self._domain.observation_centre, self._domain.observation_scale
        return MethodInfo(
            self.score,
            shape,
            centre,
            scale,
            self.config["rule"],
            self.config["space"],
            self.config["options"],
            mask=self._domain.mask if self._domain is not None else None,
            order=self._domain.order if self._domain is not None else None,
            won=self._domain.won if self._domain is not None else None,
            domain=self._domain.facts() if self._domain is not None else None,
        )

    def _actions(self, action: Any, n: int) -> Array:
        """The executed actions as (n,) or, where they are numbers, (n, k)."""
        low = self.agent.action_low
        if low is None:
            actions: Array = as_column("action", action, np.int64, n)
            if actions.min() < 0 or actions.max() >= self.agent.n_actions:
                raise BadSpecError(f"action {action} given; the agent's are 0 to {self.agent.n_actions - 1}")
            return actions
        numbers = np.atleast_1d(np.asarray(action, np.float32))
        numbers = numbers[None] if numbers.ndim == 1 and n == 1 else numbers
        if numbers.shape != (n, len(low)) or not np.isfinite(numbers).all():
            raise BadSpecError(f"action {action} given for {n} observations; {len(low)} finite numbers each are needed")
        return numbers

    def _rows_of(self, batch: Any) -> Rows:
        n = length_of(batch)
        if n > self.n_envs:
            raise BadObservationError(f"a batch of {n} observations was given; make the agent with n_envs={n}")
        return self._rows[:n]

    def _decision(self, rows: Rows, batch: Any) -> Decision:
        """What the agent wanted there: from the last predict() if that was about it, else asked again."""
        if self._last is not None and self._is_fresh[rows].all():
            seen, decision = self._last
            if len(decision.actions) > rows[-1] and are_equal(take(seen, rows), batch):
                return Decision(decision.actions[rows], decision.model_states[rows], decision.preferences[rows])
        decision = self.method.forward(rows, batch)
        self.method.act(rows, batch, decision)
        return decision

    def _end_episodes(self, rows: Rows) -> None:
        self.method.end_episode(rows)
        self._episodes[rows] += 1
        self.detector.end_episode(rows, self._returns[rows], self._episodes[rows])
        self._notice(rows)
        self._returns[rows] = 0.0

    def _notice(self, rows: Rows) -> None:
        """Tell the method where the detector has changed its mind."""
        new = rows[self.detector.context[rows] != self._world[rows]]
        if len(new):
            self._world[new] = self.detector.context[new]
            self.method.on_context_change(new, self._world[new])


def _reference(model: Any) -> str | None:
    """How a saved agent finds its model again: a file's full path or a shipped agent's name; None for live objects."""
    if isinstance(model, str | Path):
        return str(Path(model).resolve()) if Path(model).exists() else str(model)
    return None
