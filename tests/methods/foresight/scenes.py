"""Small random worlds with rollouts, and the rollout in plain numpy."""

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from nappingrl.methods.foresight.policies import LINEAR, QUADRATIC, n_terms
from nappingrl.methods.foresight.quadric import Quadric
from nappingrl.methods.foresight.rollout import COVERAGE, RETURN, Rollouts
from nappingrl.methods.foresight.terminations import ABOVE, BELOW, HalfSpace, Termination, Terminations, pack
from nappingrl.world_model.model import Model
from world_model.toy_domains import literal_step, make_model

Array = NDArray[np.float64]
D, HORIZON = 2, 12
SEEDS = st.integers(0, 10**6)
KIND = st.sampled_from([LINEAR, QUADRATIC])

RIGHT = Termination((HalfSpace(0, ABOVE, 1.0),), -5.0)
BOTTOM = Termination((HalfSpace(1, BELOW, -1.5),), -0.5)
CORNER = Termination((HalfSpace(0, ABOVE, 0.7), HalfSpace(1, ABOVE, 0.0)), 4.0)
LEFT = Termination((HalfSpace(0, BELOW, -1.0),), -2.0)
GOAL = Termination((HalfSpace(0, ABOVE, 1.2),), 3.0)
CIRCLE = Quadric(np.zeros(2), np.ones(2), np.array([0.0, 0.0, 1.0, 0.0, 1.0]), 4.0, -1.0)
"""Terminates beyond x^2 + y^2 = 4."""

TERMINATIONS = {
    "none": pack([], D),
    "bad": pack([RIGHT, BOTTOM], D),
    "wanted": pack([CORNER], D),
    "both": pack([LEFT, GOAL], D),
    "circle": pack([], D, bad=CIRCLE),
}
TERMINATION = st.sampled_from(list(TERMINATIONS.values()))


def model_of(seed: int, action_size: int = 2, rewards: tuple[float, float] = (-1.0, 1.0)) -> Model:
    """A model with random weights whose rewards depend on the action alone, and lie between these two."""
    rng = np.random.default_rng(seed)
    model = make_model(rng, D, action_size, has_products=bool(seed % 2), size=0.2)
    model.shared[D] = 0.0
    model.affine[D] = 0.0
    model.affine[D, :, D] = rng.uniform(*rewards, action_size)
    return model


def rollouts_of(
    seed: int,
    terminations: Terminations,
    n: int = 3,
    goal: int = RETURN,
    rewards: tuple[float, float] = (-1.0, 1.0),
    is_discrete: bool = True,
    action_size: int = 2,
) -> Rollouts:
    """Rollouts in a random world, with the tightest correct bounds of the rewards."""
    model = model_of(seed, action_size, rewards)
    rng = np.random.default_rng([seed, 2])
    starts, noise = rng.uniform(-0.5, 0.5, (n, D)), rng.normal(size=(n, HORIZON, D))
    max_reward = float(model.affine[D, :, D].max()) if is_discrete else 9.0
    return Rollouts(model, terminations, starts, noise, goal, max_reward, terminations.max_reward, is_discrete)


def weights_of(seed: int, kind: int, n_outputs: int) -> Array:
    """Random weights of a policy."""
    return np.random.default_rng([seed, 1]).normal(size=(n_outputs, n_terms(kind, D)))


def literal_rollout(rollouts: Rollouts, number: int, kind: int, weights: Array) -> float:
    """The value of one rollout."""
    return literal_path(rollouts, number, kind, weights)[0]


def literal_path(rollouts: Rollouts, number: int, kind: int, weights: Array) -> tuple[float, list[Array]]:
    """One rollout, as it is described: its value and its states."""
    model, state = rollouts.model, rollouts.starts[number]
    states, total = [state], 0.0
    for noise in rollouts.noise[number]:
        z = (state - model.frame.centre) / model.frame.scale
        terms = [*z, 1.0]
        if kind == QUADRATIC:
            terms += [z[i] * z[j] for i in range(D) for j in range(i, D)]
        scores = weights @ np.array(terms)
        if rollouts.is_discrete:
            encoded = np.eye(len(weights))[int(np.argmax(scores))]
        else:
            scaled = np.clip(scores, -1, 1)
            encoded = np.concatenate([[1.0], scaled, scaled**2])
        after, reward = literal_step(model, state, encoded)
        state = np.clip(after + model.noise * noise, model.low, model.high)
        states.append(state)
        last = literal_terminal_reward(rollouts.terminations, state)
        total += reward if last is None else last
        if last is not None:
            break
    if rollouts.goal == COVERAGE:
        total = float((np.ptp(states, axis=0) / model.frame.scale).sum())
    return total, states


def literal_terminal_reward(terminations: Terminations, state: Array) -> float | None:
    """The reward of the first termination that contains the state."""
    for observations, sides, limits, reward in zip(*terminations[:4], strict=True):
        conditions = zip(observations, sides, limits, strict=True)
        if all(side * state[i] > side * limit for i, side, limit in conditions if i >= 0):
            return float(reward)
    if len(terminations.bad.weights) and state @ state > terminations.bad.limit:
        return terminations.bad.reward
    return None
