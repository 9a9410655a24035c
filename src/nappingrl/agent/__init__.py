"""NappingAgent: your trained agent plus adaptation, with SB3's predict()."""

from copy import deepcopy
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from nappingrl.adaptation import Adaptation, AdaptationSpec, bare_domain
from nappingrl.agent.arguments import check_sizes, default_method, path_of, resolve
from nappingrl.agent.calibration import Calibration, calibrate
from nappingrl.agent.callbacks import OnEpisode, ended_episodes
from nappingrl.agent.context_names import ContextNames
from nappingrl.agent.environment import EnvFacts, check_env, no_time_limit, observed, read_domain, read_env
from nappingrl.agent.notices import Notices
from nappingrl.agent.saving import load_saved, save_agent
from nappingrl.agent.status import Journal, Status, log
from nappingrl.agents import load_agent
from nappingrl.agents.base import Agent, check_fit
from nappingrl.agents.observations import are_equal, as_actions, as_batch, as_column, check_alike, length_of, take
from nappingrl.detectors import Detector
from nappingrl.domains import find_domain
from nappingrl.errors import BadObservationError, BadSpecError
from nappingrl.explain import EVERYWHERE, ReadableRule, summarise_principles
from nappingrl.methods.base import Method
from nappingrl.score import Eval, Score, as_score
from nappingrl.types import Decision, DomainSpec, Rows, Transition

Array = NDArray[Any]
State = tuple[Array, ...] | None
AnyEnv = TypeVar("AnyEnv")


class NappingAgent:
    """A frozen agent that adapts: `predict` as in SB3, `observe` after every step.

    Examples:
        >>> import gymnasium, nappingrl
        >>> agent = nappingrl.NappingAgent("ppo", domain="cartpole", detector="given")
        >>> env = agent.wrap(gymnasium.make("nappingrl/CartPole-v0"))
        >>> observation, info = env.reset(seed=0, options={"params": {"force": -10.0}})
        >>> action, state = agent.predict(observation, deterministic=True)

    Args:
        model: a live SB3 model, the path of an SB3 zip, "hf:OWNER/NAME" of the Hugging Face Hub, any `Agent`, or a
            shipped agent's name (with `domain`).
        domain: one of `napping list`, or the id of a gymnasium environment; brings defaults for everything else and
            the words of `explain`. Default: what the first environment tells that is given to `wrap`.
        method: one of `napping list`. Default: auto; napping if a score is given, or where observations are not one row
            of numbers.
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
        method: str | None = None,
        score: Score | Eval | str | None = None,
        detector: Detector | str | None = None,
        guard: bool = False,
        n_envs: int = 1,
        seed: int = 0,
        **method_options: Any,
    ) -> None:
        known = find_domain(domain) if domain else None
        self.agent: Agent = load_agent(model, domain)
        self.domain = known.with_options(self.agent.domain_options) if known else bare_domain(self.agent)
        check_sizes(self.agent, n_envs, seed)
        if domain:
            check_fit(self.agent, self.domain)
        elif isinstance(score, str):
            raise BadSpecError(f"score '{score}' is a name; names need domain=, else give a Score or a function")
        own_score, own_detector = as_score(score), detector if isinstance(detector, Detector) else None
        method = method or default_method(self.domain, score)
        named_score = "" if own_score is not None else str(score or "")
        named_detector = "" if own_detector is not None else str(detector or "")
        named = AdaptationSpec(method, named_score, named_detector, method_options, guard)
        self._spec = spec = resolve(self.domain, named)
        self._own = own_score, own_detector
        self.model_path = path_of(model)
        self.n_envs = n_envs
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
        self._rows = np.arange(n_envs)
        self.episodes = np.zeros(n_envs, np.int64)
        """Episodes observed, by environment."""
        self.has_begun = False
        """Whether a step was observed or predicted."""
        self._last: tuple[Any, Decision] | None = None  # the latest predict(): observations and decision
        self._is_fresh = np.zeros(n_envs, np.bool_)  # predicted and not yet observed
        self.names = ContextNames()
        self._listeners: list[OnEpisode] = []
        self.calibration: Calibration | None = None
        """What `calibrate` recorded."""
        self._adaptation: Adaptation | None = None
        if self.domain.name or not spec.needs_domain(own_detector):
            self.adopt(self.domain)

    def adopt(self, domain: DomainSpec) -> None:
        """Start anew in this domain; everything learned is forgotten."""
        self.domain = domain
        self._adaptation = self._spec.build(self.agent, domain, self.n_envs, *self._own)
        self._notices = Notices(self._adaptation, self.config["method"], self.config["detector"])
        self.journal = Journal(self._adaptation)
        self.restart()

    def restart(self, first_episode: int = 0) -> None:
        """Forget everything learned; episodes count from this one (negative: those before the change)."""
        words = np.random.SeedSequence(self.config["seed"]).generate_state(self.n_envs, np.uint64)
        self.adaptation.start(self._rows, words.astype(np.uint64), first_episode)
        self.adaptation.begin_episode(self._rows)

    @property
    def adaptation(self) -> Adaptation:
        """Method and detector in lock step; some of them need to know the environment first."""
        if self._adaptation is None:
            raise BadSpecError(f"{self._waiting()}: call agent.wrap(env) first, or give domain=")
        return self._adaptation

    def _waiting(self) -> str:
        return f"{self._spec.needs_domain(self._own[1])} must know the environment"

    @property
    def method(self) -> Method:
        """What adapts."""
        return self.adaptation.method

    @property
    def detector(self) -> Detector:
        """What notices changes."""
        return self.adaptation.detector

    def __repr__(self) -> str:
        """Model, method, context and number of regions, of the first environment."""
        where = f", domain={self.domain.name!r}" if self.domain.name else ""
        start = f"NappingAgent({self.agent.name!r}{where}, method={self.config['method']!r}, "
        if self._adaptation is None:
            return f"{start}waiting for wrap(env), n_envs={self.n_envs})"
        context = self.names.of(int(self.adaptation.contexts[0]))
        regions = int(self.method.regions(self._rows[:1])[0][0])
        return f"{start}context={context!r}, regions={regions}, n_envs={self.n_envs})"

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
        if self._adaptation is None:
            return [f"{self._waiting()}: it waits for agent.wrap(env)"]
        return list(self._notices.notes(env).values())

    def status(self, env: int = 0) -> Status:
        """What happens in an environment: calibrating, watching or an alarm; what acts, and how often each acted."""
        if self._adaptation is None:
            return Status("waiting", self.notes()[0])
        return self.journal.status(env)

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
        self.has_begun = True
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
        self.has_begun = True
        accepted = self.adaptation.filter.accept(rows, batch, actions, next_batch, rewards)
        if accepted is not None:
            self._notices.warn("dropped", rows[~accepted])
            rows, batch, next_batch = rows[accepted], take(batch, accepted), take(next_batch, accepted)
            actions, rewards = as_actions(self.agent, actions[accepted], len(rows)), rewards[accepted]
            terminated, truncated = terminated[accepted], truncated[accepted]
        if len(rows):
            decision = self._decision(rows, batch)
            step = Transition(batch, decision, actions, next_batch, rewards, terminated, truncated)
            alarmed = self.adaptation.learn(rows, step)
            self._is_fresh[rows] = False
            self.journal.step(rows, alarmed, self.episodes)
        due = self._notices.count(rows)
        if len(due) or len(ended):
            self._notices.warn("method", np.concatenate([due, ended]))
        if len(ended):
            self._end_episodes(ended)

    def wrap(self, env: AnyEnv, index: int = 0) -> AnyEnv:
        """The environment, wrapped so that every step is observed: evaluate_policy(agent, agent.wrap(env)) adapts.

        Takes a gymnasium.Env (`index` says which of the agent's environments it is), or a vector environment of
        gymnasium or SB3 with `n_envs` copies. The first one also tells bounds, time limit and names, unless `domain`
        was given or a step was observed before.
        """
        facts = self.meet(env)
        if facts.n_envs not in (0, self.n_envs):
            raise BadSpecError(f"{facts.n_envs} copies given, the agent serves {self.n_envs}; make it with n_envs=")
        if not 0 <= index < self.n_envs:
            raise BadSpecError(f"index {index} given, the agent serves n_envs={self.n_envs} environments")
        wrapped: AnyEnv = observed(env, self, index)
        return wrapped

    def meet(self, env: Any) -> EnvFacts:
        """Learn what an environment tells of the domain; refuse one with other spaces."""
        facts = read_env(env)
        check_env(self.agent, facts)
        if self._adaptation is None or not (self.domain.name or self.has_begun):
            self.adopt(read_domain(facts, self.domain))
            if not facts.time_limit:
                self._notices.warn_of("time limit", no_time_limit(facts))
        return facts

    def calibrate(self, env_or_transitions: Any, episodes: int = 10, seed: int | None = None) -> Calibration:
        """Record how the frozen agent does in the *unchanged* environment, before anything else.

        The detector then watches from the first step on, and methods know the world before the change; without
        calibration, detectors take the first episodes that they observe for the unchanged environment.

        Args:
            env_or_transitions: an environment, in which the frozen agent plays; or recorded steps
                (observation, action, next_observation, reward, terminated, truncated) of whole episodes, in order.
            episodes: number of episodes to play in an environment.
            seed: seeds the first reset of an environment; None: the environment continues with its own generator.
        """
        self.calibration = calibrate(self, env_or_transitions, episodes, seed)
        self.has_begun = True
        log.info("calibrated on %s", self.calibration)
        for row in self._rows.tolist():
            self.journal.look(row)
        return self.calibration

    def begin_episode(self, env: int = 0) -> None:
        """An environment was reset: forget its unfinished episode."""
        self._is_fresh[env] = False
        self.adaptation.discard_episode(np.array([env]))
        self.journal.discard_episode(env)

    def on_episode(self, listener: OnEpisode) -> None:
        """Call a function with every `Episode` that ends; see `nappingrl.agent.callbacks`."""
        if not callable(listener):
            raise BadSpecError(f"on_episode takes a function of an Episode, not {type(listener).__name__}")
        self._listeners.append(listener)

    def explain(self, env: int = 0) -> list[ReadableRule]:
        """The principles learned so far as disjoint rules, the most visited first; a single policy is one rule."""
        table, policy = self.method.table(env), self.method.describe(env)
        if policy:
            visits = int(table["visits"].sum()) if table else 0
            return [ReadableRule(EVERYWHERE, "", (policy,), 1, visits, float(table["best"].mean()) if table else 0.0)]
        if not table:
            return []
        return summarise_principles(table, self.domain, self.method.choice_names or self.domain.action_labels)

    def describe_policy(self, env: int = 0) -> str:
        """The policy in force in words, where the method has one (foresight)."""
        return self.method.describe(env)

    # ----------------------------------------------------------------------------------------------- contexts

    def contexts(self, env: int = 0) -> dict[str, int]:
        """The contexts met so far by name, with the number of principles or policies learned in each."""
        sizes = {0: 0} | self.method.context_sizes(env)
        return {self.names.of(context): count for context, count in sizes.items()}

    def rename_context(self, old: str, new: str) -> None:
        """Give a context another name, such as "strong wind" instead of "novelty 1"."""
        self.names.rename(old, new, self._known_contexts())

    def switch_to(self, name: str, env: int = 0) -> None:
        """Continue with what was learned in a context; "as trained" is the frozen agent, a new name starts afresh."""
        self.has_begun = True
        self.adaptation.switch_context(env, self.names.find(name, self._known_contexts()))

    def _known_contexts(self) -> set[int]:
        """The contexts that any environment is in or remembers."""
        return {0, *self.adaptation.contexts.tolist()}.union(*map(self.method.context_sizes, range(self.n_envs)))

    # ------------------------------------------------------------------------------------------ saving, loading

    def save(self, path: str | Path) -> Path:
        """Write a zip of JSON and npz (no pickle): settings, principles, and the base model by path and sha256."""
        return save_agent(self, path)

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

        A score or a detector of your own is not in the file: give it again. The file is not trusted: all of it is
        checked, and "module:Env-v0" is imported only if given again as `domain`.
        """
        return load_saved(cls, path, model, score, detector, domain)

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
        for episode in ended_episodes(self, rows[~is_cut]) if self._listeners else ():
            for listener in self._listeners:
                listener(episode)
        self.journal.end_episode(rows[~is_cut])
        self.episodes[rows[~is_cut]] += 1
        self._is_fresh[rows[is_cut]] = False
        self.adaptation.end_episode(rows, self.episodes[rows])
        self.journal.begin_episode(rows, self.adaptation.begin_episode(rows), self.episodes)
