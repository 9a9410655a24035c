"""Any domain as a gymnasium environment and as a gymnasium vector environment."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from nappingrl.domains import find_domain
from nappingrl.domains.base import Domain, check_parameters
from nappingrl.domains.canvas import PixelCanvas
from nappingrl.errors import BadSpecError
from nappingrl.types import DomainSpec

Array = NDArray[Any]


def _spaces(spec: DomainSpec) -> tuple[Box, Discrete]:
    return Box(spec.observation_low, spec.observation_high, dtype=np.float32), Discrete(spec.n_actions)


def _options(spec: DomainSpec, options: dict[str, Any] | None) -> dict[str, float] | None:
    """The parameters asked for by reset(options={"params": {...}}); None where nothing was asked."""
    unknown = sorted(set(options or {}) - {"params"})
    if unknown:
        raise BadSpecError(f"unknown reset option '{unknown[0]}'; allowed: params (a dictionary of parameters)")
    return check_parameters(spec, options["params"]) if options else None


class DomainEnv(gymnasium.Env[Array, np.int64]):
    """One copy of a domain; `reset(options={"params": {"gravity": 30.0}})` sets its parameters from then on.

    Further arguments are options of the domain.
    """

    metadata = {"render_modes": ["human", "rgb_array"], "render_fps": 50}  # noqa: RUF012

    def __init__(self, domain: str, render_mode: str | None = None, **options: Any) -> None:
        self.domain: Domain = find_domain(domain, options).make(1)
        self.metadata = self.metadata | {"render_fps": self.domain.spec.frames_per_second}
        if type(self.domain).draw is Domain.draw:
            self.metadata["render_modes"] = []
        self.observation_space, self.action_space = _spaces(self.domain.spec)
        self.render_mode = render_mode
        self._row = np.zeros(1, np.int64)
        self._canvas: PixelCanvas | None = None

    def set_params(self, **params: float) -> None:
        """Change parameters; what is not named returns to its default. Takes effect at once."""
        self.domain.apply(self._row, params)

    @property
    def params(self) -> dict[str, float]:
        """The parameters in force."""
        return dict(zip(self.domain.spec.parameters, self.domain.parameters_of(self._row)[0].tolist(), strict=True))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        params = _options(self.domain.spec, options)
        if params is not None:
            self.set_params(**params)
        self.domain.reset(self._row, self.np_random.random((1, self.domain.spec.n_reset_draws)))
        if self.render_mode == "human":
            self.render()
        observation = self.domain.observe(self._row)[0]
        return observation, self._info(observation)

    def step(self, action: np.int64) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """One step; truncation is left to the TimeLimit wrapper that gymnasium.make adds."""
        rewards, terminated = self.domain.step(self._row, np.array([action], np.int64))
        if self.render_mode == "human":
            self.render()
        observation = self.domain.observe(self._row)[0]
        return observation, float(rewards[0]), bool(terminated[0]), False, self._info(observation)

    def _info(self, observation: Array) -> dict[str, Any]:
        """Which actions are valid, where not all are."""
        mask = self.domain.spec.action_mask
        return {} if mask is None else {"action_mask": mask(observation[None])[0]}

    def render(self) -> NDArray[np.uint8] | None:
        """The picture as an array, or in a window."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() called without a render_mode; make the environment with one")
            return None
        if self._canvas is None:
            self._canvas = PixelCanvas()
        self._canvas.clear()
        self.domain.draw(0, self._canvas)
        if self.render_mode == "human":
            self._canvas.show(self.domain.spec.title, self.domain.spec.frames_per_second)
            return None
        return self._canvas.pixels()

    def close(self) -> None:
        """Close the window."""
        if self._canvas is not None:
            self._canvas.close()


class DomainVectorEnv(VectorEnv[Array, Array, Array]):
    """N copies stepped together; an ended episode is reset on its next step (gymnasium's default)."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012

    def __init__(
        self, domain: str, num_envs: int = 1, max_episode_steps: int | None = None, render_mode: str | None = None,
        **options: Any,
    ) -> None:  # fmt: skip
        self.num_envs, self.render_mode = num_envs, render_mode
        self.domain: Domain = find_domain(domain, options).make(num_envs)
        self.max_episode_steps = max_episode_steps or self.domain.spec.horizon
        self.single_observation_space, self.single_action_space = _spaces(self.domain.spec)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._rows = np.arange(num_envs)
        self._lengths = np.zeros(num_envs, np.int64)
        self._ended = np.zeros(num_envs, np.bool_)
        self._canvas: PixelCanvas | None = None

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin an episode in every copy."""
        if isinstance(seed, list):
            raise BadSpecError("a list of seeds was given; this vector environment takes one seed for all copies")
        super().reset(seed=seed)
        params = _options(self.domain.spec, options)
        if params is not None:
            self.domain.apply(self._rows, params)
        self._begin(self._rows)
        observations = self.domain.observe(self._rows)
        return observations, self._info(observations)

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """One step of every copy; those that ended before begin a new episode instead (reward 0)."""
        rewards, terminated = np.zeros(self.num_envs), np.zeros(self.num_envs, np.bool_)
        again, running = self._rows[self._ended], self._rows[~self._ended]
        rewards[running], terminated[running] = self.domain.step(running, np.asarray(actions, np.int64)[running])
        self._lengths[running] += 1
        truncated = self._lengths >= self.max_episode_steps
        self._begin(again)
        truncated[again] = False
        self._ended = terminated | truncated
        observations = self.domain.observe(self._rows)
        return observations, rewards, terminated, truncated, self._info(observations)

    def _info(self, observations: Array) -> dict[str, Any]:
        mask = self.domain.spec.action_mask
        if mask is None:
            return {}
        return {"action_mask": mask(observations), "_action_mask": np.ones(self.num_envs, np.bool_)}

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """One picture per copy."""
        if self.render_mode is None:
            return None
        if self._canvas is None:
            self._canvas = PixelCanvas()
        pictures = []
        for row in range(self.num_envs):
            self._canvas.clear()
            self.domain.draw(row, self._canvas)
            pictures.append(self._canvas.pixels())
        return tuple(pictures)

    def _begin(self, rows: NDArray[np.int64]) -> None:
        self.domain.reset(rows, self.np_random.random((len(rows), self.domain.spec.n_reset_draws)))
        self._lengths[rows] = 0
        self._ended[rows] = False
