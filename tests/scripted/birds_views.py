"""Observations of Angry Birds made by hand, and whole trials of a brain in the real world."""

import numpy as np

from nappingrl.domains.angrybirds import aiming as aim
from nappingrl.domains.angrybirds.domain import AngryBirds
from nappingrl.domains.angrybirds.levels.templates import TEMPLATES
from nappingrl.domains.angrybirds.physics.scene import PIXELS
from nappingrl.scripted.base import Observation, ScriptedPolicy

Thing = tuple[str, float, float, float, float] | None
"""Kind, left, top, width, height in pixels; None: the slot is empty."""

SLING = (92.0, 248.0, 12.0, 38.0)
PIG: Thing = ("pig", 327, 230, 14, 14)


def observe(
    *things: Thing, sling: tuple[float, float, float, float] = SLING, bird: str = "red", goals: int | None = None
) -> Observation:
    """An observation whose slots hold these things; goals: as many as there are pigs, unless told."""
    out = np.zeros(aim.N_OBSERVATIONS, np.float32)
    kinds = (*aim.CLASSES, "other")
    for slot, thing in enumerate(things):
        if thing is not None:
            kind, *box = thing
            at = slot * aim.PER_SLOT
            out[at] = out[at + 1 + kinds.index(kind)] = 1.0
            out[at + 1 + len(kinds) : at + aim.PER_SLOT] = _scaled(*box)
    at = aim.N_SLOTS * aim.PER_SLOT
    out[at : at + 4] = _scaled(*sling)
    out[at + 4] = 1 / aim.MOST_COUNTED
    out[at + 5 + aim.BIRD_COLOURS.index(bird)] = 1.0
    pigs = sum(thing is not None and thing[0] == "pig" for thing in things)
    out[aim.PIGS] = pigs / aim.MOST_COUNTED
    out[aim.GOALS] = (pigs if goals is None else goals) / aim.MOST_COUNTED
    return out


def _scaled(left: float, top: float, width: float, height: float) -> tuple[float, float, float, float]:
    return (left + width / 2) / PIXELS[0], (top + height / 2) / PIXELS[1], width / 100, height / 100


def shoot(brain: ScriptedPolicy, observation: Observation, is_hit: bool, detected: bool = True) -> tuple[int, int, int]:
    """Let a brain shoot once and hear that it passed or failed; returns slot, trajectory and offset."""
    action = brain.act(observation)
    following = observation.copy()
    following[aim.GOALS] = 0.0 if is_hit else observation[aim.GOALS]
    brain.learn(observation, action, following, float(is_hit), True, detected)
    return aim.split(action)


def pass_rates(brain: ScriptedPolicy, novelty: str, n_before: int, n_after: int, seed: int = 0) -> tuple[float, float]:
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
            action = brain.act(seen)
            rewards, ended = world.step(row, np.array([action]))
            reward, has_ended = float(rewards[0]), bool(ended[0])
            brain.learn(seen, action, world.observe(row)[0], reward, has_ended, is_novel)
        passed.append(reward > 0)
    return float(np.mean(passed[:n_before])), float(np.mean(passed[n_before + n_after // 2 :]))
