"""Small discrete worlds for benchmarks/adapt_by_default.py; importing this module registers them.

FrozenLake slips by default. `DryLake-v0` is its standard map without slipping, `DryLakeOther-v0` another map of the
same size.
"""

import gymnasium

LAKES = {
    "DryLake-v0": ["SFFF", "FHFH", "FFFH", "HFFG"],
    "DryLakeOther-v0": ["SHFF", "FFFH", "HFFF", "HHFG"],
}

for _name, _rows in LAKES.items():
    if _name not in gymnasium.registry:
        gymnasium.register(
            _name,
            entry_point="gymnasium.envs.toy_text.frozen_lake:FrozenLakeEnv",
            kwargs={"desc": _rows, "is_slippery": False},
            max_episode_steps=100,
        )
