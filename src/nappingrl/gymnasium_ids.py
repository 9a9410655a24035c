"""The ids of domains with gymnasium: `gymnasium.make("nappingrl/CartPole-v0")` works after `import nappingrl`.

gymnasium takes longer to import than all that `import nappingrl` needs, so the ids are registered when somebody else
imports it.
"""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

    from nappingrl.registry import Entry


def is_imported() -> bool:
    """Whether gymnasium is imported already."""
    return "gymnasium" in sys.modules


def when_imported(action: Callable[[], None]) -> None:
    """Do this now if gymnasium is imported, else right after it is."""
    if is_imported():
        action()
    else:
        sys.meta_path.insert(0, _AfterGymnasium(action))


class _AfterGymnasium:
    """An entry of `sys.meta_path` that finds gymnasium as Python would, and acts once after it is loaded."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action

    def find_spec(self, name: str, path: object = None, target: object = None) -> "ModuleSpec | None":
        """Leave every other module to Python."""
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_act(module: ModuleType) -> None:
                load(module)
                self._action()

            spec.loader.exec_module = load_and_act  # type: ignore[method-assign]
        return spec


def add_id(entry: "Entry") -> None:
    """Register the environment of a domain, unless its id is taken."""
    import gymnasium

    if entry.env_id and entry.env_id not in gymnasium.registry:
        gymnasium.register(
            entry.env_id,
            entry_point=entry.env_class,
            vector_entry_point="nappingrl.domains.as_env:DomainVectorEnv",
            max_episode_steps=entry.horizon or entry.load().spec.horizon,
            kwargs={"domain": entry.name},
        )


def remove_id(env_id: str) -> None:
    """Take an id back."""
    import gymnasium

    gymnasium.registry.pop(env_id, None)
