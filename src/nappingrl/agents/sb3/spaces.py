"""The readable fields in the `data` of an SB3 zip: spaces, policy class and policy options; no pickles."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.errors import BadAgentError, shown

OWN_PACKAGES = ("stable_baselines3.", "sb3_contrib.")
MAX_NUMBERS = 1000
"""Largest action that can be read: numpy abbreviates longer arrays."""


def n_actions(data: Mapping[str, Any]) -> int:
    """The number of discrete actions; 0 for a Box."""
    space = data.get("action_space")
    space_class = _class_name(space.get(":type:")) if isinstance(space, dict) else ""
    if space_class == "Box":
        return 0
    if space_class != "Discrete":
        raise BadAgentError(f"its action space is {space_class or 'not readable'}; only Discrete and Box are supported")
    assert isinstance(space, dict)
    return _count(space, "actions")


def action_limits(data: Mapping[str, Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Lower and upper bounds of a Box, which SB3 writes as text such as "[-2.  -1.5]"."""
    low, high = (_numbers(data["action_space"].get(name)) for name in ("low", "high"))
    if low is None or high is None or low.shape != high.shape:
        raise BadAgentError(
            "the limits of its actions cannot be read (one row of numbers is expected); "
            "load it with SB3 and give the live model"
        )
    return low, high


def _numbers(text: Any) -> NDArray[np.float32] | None:
    """The numbers in "[-2.  -1.5]"; None for any other text."""
    if not isinstance(text, str) or len(text) > 32 * MAX_NUMBERS or not re.fullmatch(r"\[[^\[\]]+\]", text):
        return None
    try:
        numbers = np.array([float(word) for word in text[1:-1].split()], np.float32)
    except ValueError:
        return None
    return None if np.isnan(numbers).any() else numbers


def observation_shape(data: Mapping[str, Any]) -> tuple[int, ...] | None:
    """The shape of observations that enter the network flattened or one-hot; None if the file does not tell."""
    space = data.get("observation_space")
    if not isinstance(space, dict):
        return None
    if n := n_states(data):
        return (n,)
    space_class = _class_name(space.get(":type:"))
    shape = space.get("_shape", space.get("shape"))  # gymnasium's name, old gym's name
    is_image = isinstance(shape, list) and len(shape) == 3 and space.get("dtype") == "uint8"
    if is_image or space_class not in ("", "Box"):
        what = "images" if is_image else f"a {space_class}"
        raise BadAgentError(f"its observations are {what}; load it with SB3 and give the live model")
    if not isinstance(shape, list) or not all(isinstance(n, int) and n > 0 for n in shape):
        return None
    return tuple(shape)


def n_states(data: Mapping[str, Any]) -> int:
    """The number of whole numbers that a Discrete observation may be; 0 for other observations."""
    space = data.get("observation_space")
    if not isinstance(space, dict) or _class_name(space.get(":type:")) != "Discrete":
        return 0
    return _count(space, "observations")


def check_plain(data: Mapping[str, Any]) -> None:
    """Refuse policies with custom code: the tensors do not tell what it does."""
    policy = data.get("policy_class")
    module = policy.get("__module__") if isinstance(policy, dict) else None
    if isinstance(module, str) and not module.startswith(OWN_PACKAGES):
        raise BadAgentError(f"its policy class is from '{shown(module)}', not SB3's own; give the live model")
    extractor = _class_name(policy_options(data).get("features_extractor_class"))
    if extractor not in ("", "FlattenExtractor"):
        raise BadAgentError(f"it uses the feature extractor '{extractor}'; give the live model")


def activation(data: Mapping[str, Any]) -> str | None:
    """The activation named in policy_kwargs ("<class 'torch.nn.modules.activation.ReLU'>"), in lower case."""
    return _class_name(policy_options(data).get("activation_fn")).lower() or None


def policy_options(data: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of the policy."""
    options = data.get("policy_kwargs")
    return options if isinstance(options, dict) else {}


def _count(space: Mapping[str, Any], what: str) -> int:
    """The size of a Discrete space."""
    count = str(space.get("n"))  # gymnasium's is a numpy integer, which SB3 writes as text
    if not count.isdecimal() or len(count) > 6 or int(count) < 1:
        raise BadAgentError(f"its number of {what} is {count[:20]}")
    return int(count)


def _class_name(text: Any) -> str:
    """The last word of "<class 'package.module.Name'>" or "module.Name"."""
    words = re.findall(r"\w+", text) if isinstance(text, str) and len(text) < 500 else []
    return words[-1] if words else ""
