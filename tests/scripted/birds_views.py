"""Hand-made observations of Angry Birds, and whole trials of a policy."""

import numpy as np

from nappingrl.domains.angrybirds.actions import split
from nappingrl.domains.angrybirds.domain import AngryBirds
from nappingrl.domains.angrybirds.layout import ObservedLevel, Target, encode
from nappingrl.domains.angrybirds.levels.templates import TEMPLATES
from nappingrl.domains.angrybirds.physics.scene import Box
from nappingrl.scripted.base import Observation, ScriptedPolicy

Thing = tuple[str, float, float, float, float] | None
"""Kind, left, top, width, height in pixels; None: the slot is empty."""

SLING = (92.0, 248.0, 12.0, 38.0)
PIG: Thing = ("pig", 327, 230, 14, 14)


def observe(*things: Thing, sling: tuple[float, float, float, float] = SLING, bird: str = "red") -> Observation:
    """An observation with these objects in its slots."""
    targets = tuple(Target(slot, thing[0], _box(*thing[1:])) for slot, thing in enumerate(things) if thing is not None)
    return encode(ObservedLevel(targets, _box(*sling), 1, bird))


def _box(left: float, top: float, width: float, height: float) -> Box:
    return Box(left, top, left + width, top + height)


def shoot(
    policy: ScriptedPolicy, observation: Observation, is_hit: bool, detected: bool = True
) -> tuple[int, int, int]:
    """Let a policy shoot once and learn the outcome; returns slot, trajectory and offset."""
    action = policy.act(observation)
    policy.learn(observation, action, observation, float(is_hit), True, detected)
    return split(action)


def pass_rates(policy: ScriptedPolicy, novelty: str, n_before: int, n_after: int, seed: int = 0) -> tuple[float, float]:
    """Share of levels passed before a novelty, and in the second half of those after it, which is told."""
    world, row, draws = AngryBirds(1), np.array([0]), np.random.default_rng(seed)
    setting = {"template": 1.0 + list(TEMPLATES).index(novelty)}
    passed = []
    for level in range(n_before + n_after):
        is_novel = level >= n_before
        world.apply(row, setting | ({novelty.replace("-", "_"): 1.0} if is_novel else {}))
        world.reset(row, draws.random((1, 2)))
        has_ended, reward = False, 0.0
        while not has_ended:
            seen = world.observe(row)[0].copy()
            action = policy.act(seen)
            rewards, ended = world.step(row, np.array([action]))
            reward, has_ended = float(rewards[0]), bool(ended[0])
            policy.learn(seen, action, world.observe(row)[0], reward, has_ended, is_novel)
        passed.append(reward > 0)
    return float(np.mean(passed[:n_before])), float(np.mean(passed[n_before + n_after // 2 :]))
