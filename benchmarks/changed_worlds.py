"""Environments after a change, to train in from scratch; importing this module registers them.

The commands are in benchmarks/train_changed.txt. Hyperparameters are those of the agents of benchmarks/agents, except
that SAC has 256-256 units in the changed Pendulum. The changes are those of the groups `harmless` and `physics` of
benchmarks/adapt_by_default.py.
"""

from functools import partial
from typing import Any

import gymnasium

from nappingrl import apply_novelty

CHANGED = {
    "WindyLander-v0": ("LunarLander-v3", "enable_wind=1; wind_power=15"),
    "LightLander-v0": ("LunarLander-v3", "gravity=-5"),
    "HeavyAcrobot-v0": ("Acrobot-v1", "LINK_MASS_1=2.0"),
    "LongAcrobot-v0": ("Acrobot-v1", "LINK_LENGTH_1=1.5"),
    "WeakAcrobot-v0": ("Acrobot-v1", "AVAIL_TORQUE=-0.5,0,0.5"),
    "HeavyPendulum-v0": ("Pendulum-v1", "g=15"),
}


def _make(env: str, novelty: str, **settings: Any) -> gymnasium.Env[Any, Any]:
    return apply_novelty(gymnasium.make(env, **settings), novelty)


for _name, (_env, _novelty) in CHANGED.items():
    if _name not in gymnasium.registry:
        gymnasium.register(
            _name, partial(_make, _env, _novelty), max_episode_steps=gymnasium.spec(_env).max_episode_steps
        )
