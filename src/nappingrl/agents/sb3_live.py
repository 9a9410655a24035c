"""Live models of Stable-Baselines3 and sb3-contrib: exported to numpy where they are plain, run in torch elsewhere."""

from typing import Any

import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.torch_layers import FlattenExtractor

import numpy as np

from nappingrl.agents.mlp import MlpAgent, Normaliser, policy_layers
from nappingrl.agents.base import Agent
from nappingrl.agents.sb3 import plain_numbers
from nappingrl.agents.torch import Batch, TorchBackedAgent, hash_tensors, to_numpy, watched
from nappingrl.errors import BadAgentError, BadObservationError
