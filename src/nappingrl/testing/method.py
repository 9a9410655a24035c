"""The contract of a method."""

import tempfile
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import polars as pl
from gymnasium.wrappers import TimeLimit

from nappingrl.agent import NappingAgent
from nappingrl.agents.base import Agent
from nappingrl.domains.as_env import DomainEnv
from nappingrl.errors import AdaptationWarning, BadSpecError
from nappingrl.methods.base import Method
from nappingrl.registry import methods, register, unregister
from nappingrl.testing.toys import HORIZON, Corridor, make_walker
from nappingrl.trials.engine import Engine
from nappingrl.trials.spec import RunSpec

_NAME = "nappingrl-testing-corridor"


def check_method(method: str, agent: Agent | None = None) -> None:
    """Check a registered method by its name, in a small domain; `agent` is one whose spaces fit it.

    Raises:
        AssertionError: with what the contract asks and what came instead.
    """
    method_class: type[Method] = methods.get(method)
    assert issubclass(method_class, Method), f"{method_class!r} is no subclass of nappingrl.Method"
    assert (method_class.__doc__ or "").strip(), "the class has no docstring; `napping list` shows its first line"
    agent = agent or make_walker()
    register("domain", _NAME, Corridor)
    try:
        for guard in (False, True):
            run = RunSpec(_NAME, "walker", method, trials=5, protocol="3+5", detector="given", guard=guard).complete()
            rows = Engine(run, agent).run_trials(run.trial_specs())
            _check_rows(run, rows, agent)
            _check_before(run, rows, agent)
            if not method_class.is_privileged:
                _check_save(run, agent)
    finally:
        unregister("domain", _NAME)


def _check_rows(run: RunSpec, rows: pl.DataFrame, agent: Agent) -> None:
    trials = run.trial_specs()
    assert Engine(run, agent, slots=2).run_trials(trials).equals(rows), "rows depend on how many trials run at once"
    alone = Engine(run, agent, slots=1).run_trials(trials[3:4])
    assert alone.equals(rows.filter(pl.col("number") == 3)), "a trial's rows depend on the trials beside it"
    again = Engine(run, agent, slots=1)
    again.run_trials(trials[:1])
    assert again.run_trials(trials[3:4]).equals(alone), "start() does not forget the trial before"


def _check_before(run: RunSpec, rows: pl.DataFrame, agent: Agent) -> None:
    """Before the alarm a method acts as the frozen agent does, but for those that say they learn from the start."""
    if getattr(methods.get(run.method), "learns_at_once", False):
        return
    frozen = replace(run, method="frozen", score="", options={}, guard=False).complete()
    expected = Engine(frozen, agent).run_trials(frozen.trial_specs())
    columns = ["episode", "return", "length"]
    before = pl.col("phase") == "pre"
    same = rows.filter(before).select(columns).equals(expected.filter(before).select(columns))
    assert same, "before the alarm the method must act as the frozen agent does"


def _check_save(run: RunSpec, agent: Agent) -> None:
    """A saved agent goes on as if nothing had happened; or saving is refused, guarded or not."""
    made = NappingAgent(agent, domain=_NAME, method=run.method, detector="given", guard=run.guard)
    _play(made, 3, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.zip"
        if not methods.get(run.method).can_be_saved:
            try:
                made.save(path)
            except BadSpecError:
                return
            raise AssertionError("save() must refuse a method whose `can_be_saved` is False")
        made.save(path)
        loaded = NappingAgent.load(path, model=agent)
    assert _play(loaded, 3, seed=9) == _play(made, 3, seed=9), "a loaded agent acts differently from the saved one"
    assert loaded.contexts() == made.contexts(), "a loaded agent knows other contexts than the saved one"


def _play(agent: NappingAgent, episodes: int, seed: int) -> list[list[int]]:
    """The actions of some episodes in the changed domain; that a method has nothing to do there is no matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)
        return _actions(agent, episodes, seed)


def _actions(agent: NappingAgent, episodes: int, seed: int) -> list[list[int]]:
    base = DomainEnv(_NAME)
    base.set_params(step=-0.8)
    env: gymnasium.Env[Any, Any] = agent.wrap(TimeLimit(base, HORIZON))
    played = []
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed + episode)
        actions, done = [], False
        while not done:
            action, _ = agent.predict(observation)
            actions.append(int(action))
            observation, _, terminated, truncated, _ = env.step(action)
            done = terminated or truncated
        played.append(actions)
    return played
