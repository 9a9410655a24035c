"""The contract of an agent."""

from typing import Any

import numpy as np

from nappingrl.agents import load
from nappingrl.agents.base import Agent, check_fit
from nappingrl.domains import find_domain
from nappingrl.testing.domain import rollout
from nappingrl.types import Decision


def check_agent(agent: Any, domain: str) -> None:
    """Check an agent, by its name or as an object, in a registered domain.

    Raises:
        AssertionError: with what the contract asks and what came instead.
    """
    loaded = load(agent, domain)
    assert isinstance(loaded, Agent), f"{loaded!r} is no nappingrl.Agent"
    spec = find_domain(domain).with_options(loaded.domain_options)
    check_fit(loaded, spec)
    agent = loaded.for_trials(5)
    rows = np.arange(5)
    agent.start(rows, rows.astype(np.uint64))
    for observations, *_ in rollout(spec, 5, 3):
        decision = agent.decide(rows, observations)
        assert isinstance(decision, Decision), f"forward() must return a Decision, not {type(decision).__name__}"
        _check_decision(decision, loaded)
        if not loaded.is_stateful:
            alone = loaded.forward(observations[2:3])
            assert np.array_equal(alone.actions[0], decision.actions[2]), "an action depends on the batch around it"


def _check_decision(decision: Decision, agent: Agent) -> None:
    m = len(decision.actions)
    assert m == 5, f"forward() gave {m} actions for 5 observations"
    if agent.n_actions:
        actions = decision.actions
        assert actions.dtype == np.int64, f"actions are {actions.dtype}; discrete ones must be int64"
        inside = (actions >= 0) & ((actions < agent.n_actions) | agent.extends_actions)
        assert inside.all(), f"action {actions[~inside][0]} is outside 0 to {agent.n_actions - 1}"
    states, preferences = decision.model_states, decision.preferences
    assert states.shape == (m, agent.embedding_dim), (
        f"model_states have shape {states.shape}; embedding_dim={agent.embedding_dim} asks for (m, embedding_dim)"
    )
    assert states.dtype == np.float32, f"model_states are {states.dtype}, not float32"
    assert preferences.shape == (m, agent.n_actions), f"preferences have shape {preferences.shape}"
