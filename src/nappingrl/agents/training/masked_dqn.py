"""Dueling double DQN with prioritised replay for environments with an action mask; training can be resumed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

from nappingrl.agents.object_networks import MASKED_VALUE, make_network
from nappingrl.agents.torch_agent import to_numpy
from nappingrl.agents.training.checkpoint import load_tensors
from nappingrl.errors import BadAgentError, BadSpecError
from nappingrl.files import UnusableFileError
from nappingrl.types import OnProgress

OnEvaluation = Callable[[int, float], None]


@dataclass
class PrioritisedReplayBuffer:
    """The last `capacity` transitions, sampled in proportion to their last error.

    Observations may end with a picture of zeros and ones, which is kept as bits.
    """

    capacity: int
    observations: NDArray[np.float32]
    pictures: NDArray[np.uint8]
    actions: NDArray[np.int64]
    rewards: NDArray[np.float32]
    next_observations: NDArray[np.float32]
    next_pictures: NDArray[np.uint8]
    terminated: NDArray[np.bool_]
    priorities: NDArray[np.float64]
    n_pixels: int = 0
    n: int = 0

    @classmethod
    def empty(cls, capacity: int, n_observations: int, n_pixels: int = 0) -> "PrioritisedReplayBuffer":
        """An empty buffer for `capacity` transitions, whose observations end with `n_pixels` zeros and ones."""
        numbers, bits = (capacity, n_observations - n_pixels), (capacity, (n_pixels + 7) // 8)
        return cls(
            capacity, np.zeros(numbers, np.float32), np.zeros(bits, np.uint8), np.zeros(capacity, np.int64),
            np.zeros(capacity, np.float32), np.zeros(numbers, np.float32), np.zeros(bits, np.uint8),
            np.zeros(capacity, np.bool_), np.zeros(capacity), n_pixels,
        )  # fmt: skip

    def add(
        self, observation: NDArray[Any], action: int, reward: float, next_observation: NDArray[Any], terminated: bool
    ) -> None:
        """Store a transition with the highest priority so far."""
        at, first = self.n % self.capacity, self.observations.shape[1]
        self.observations[at], self.pictures[at] = observation[:first], np.packbits(observation[first:] > 0)
        self.actions[at] = action
        self.rewards[at] = reward
        self.next_observations[at] = next_observation[:first]
        self.next_pictures[at] = np.packbits(next_observation[first:] > 0)
        self.terminated[at] = terminated
        self.priorities[at] = self.priorities.max(initial=1.0)
        self.n += 1

    def sample(
        self, size: int, exponent: float, beta: float, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Indices of transitions, and their importance weights."""
        probabilities = self.priorities[: min(self.n, self.capacity)] ** exponent
        probabilities /= probabilities.sum()
        at = rng.choice(len(probabilities), size, p=probabilities)
        weights = (len(probabilities) * probabilities[at]) ** -beta
        return at, (weights / weights.max()).astype(np.float32)

    def seen(self, at: NDArray[np.int64], is_next: bool = False) -> torch.Tensor:
        """The observations of some transitions, or those that followed."""
        numbers, bits = (self.next_observations, self.next_pictures) if is_next else (self.observations, self.pictures)
        pixels = np.unpackbits(bits[at], axis=1, count=self.n_pixels)
        return torch.as_tensor(np.concatenate([numbers[at], pixels], axis=1, dtype=np.float32))


class Trainer:
    """One training run of a recipe; all random draws derive from the seed and the episode number."""

    def __init__(self, recipe: dict[str, Any], seed: int, curves: Path | None = None) -> None:
        self._curves = curves
        self.recipe = recipe
        self.seed = seed
        self.options = recipe["hyperparameters"]
        torch.manual_seed(seed)
        self.network = make_network(recipe["network"])
        self.target = make_network(recipe["network"])
        self.target.load_state_dict(self.network.state_dict())
        self.optimiser = torch.optim.Adam(self.network.parameters(), self.options["learning_rate"])
        layout = self.network.layout
        self.replay = PrioritisedReplayBuffer.empty(self.options["buffer_size"], layout.n_observations, layout.n_pixels)
        self.episode = self.updates = self.steps = 0
        self.best_rate = -np.inf
        self.best_episode = 0
        self.best_weights = to_numpy(self.network.state_dict())
        self.losses: list[float] = []

    def run(self, folder: Path, on_progress: OnProgress | None, on_evaluation: OnEvaluation | None) -> None:
        """Train to the end, with a checkpoint at every evaluation; resume from the checkpoint in the folder, if any."""
        total = self.recipe["episodes"]
        file = folder / "checkpoint.pt"
        if file.is_file():
            self.restore(file)
        env = self._make_env()
        while self.episode < total:
            self._play(env, np.random.default_rng([self.seed, self.episode]))
            self.episode += 1
            if on_progress is not None:
                on_progress(self.episode, total)
            if self.episode % self.recipe["evaluate_every"] == 0 or self.episode == total:
                self._evaluate(on_evaluation)
                self.save(file)
        env.close()
        file.unlink(missing_ok=True)

    def _make_env(self, **options: Any) -> gymnasium.Env[Any, Any]:
        """The environment of the recipe, with other options where some are given."""
        recipe = self.recipe
        env = gymnasium.make(recipe["env"], **(recipe["env_options"] | recipe.get("domain_options", {}) | options))
        shape, n = env.observation_space.shape, self.network.layout.n_observations
        if shape != (n,):
            raise BadSpecError(f"the recipe's network takes {n} observations; with these options there are {shape}")
        return env

    def _evaluate(self, on_evaluation: OnEvaluation | None) -> None:
        """Measure the pass rate; remember the weights if it is the best so far."""
        rate = self.pass_rate(self.recipe["evaluation"])
        if rate >= self.best_rate:
            self.best_rate = rate
            self.best_episode = self.episode
            self.best_weights = to_numpy(self.network.state_dict())
        if on_evaluation is not None:
            on_evaluation(self.episode, rate)
        self._write_curves(rate)

    def _write_curves(self, rate: float) -> None:
        """Write the pass rate and the mean loss since the last evaluation to TensorBoard."""
        if self._curves is not None:
            from torch.utils.tensorboard import SummaryWriter

            with SummaryWriter(str(self._curves)) as writer:
                writer.add_scalar("evaluation/pass_rate", rate, self.episode)
                writer.add_scalar("train/loss", np.mean(self.losses or [0.0]), self.episode)
        self.losses = []

    def _play(self, env: gymnasium.Env[Any, Any], rng: np.random.Generator) -> None:
        """Play an episode, with updates after every step."""
        observation, info = env.reset(seed=int(rng.integers(2**31)))
        ended = False
        while not ended:
            action = self._explore(observation, info["action_mask"], rng)
            next_observation, reward, terminated, truncated, info = env.step(action)
            ended = terminated or truncated
            self.replay.add(
                observation, action, float(reward) - self._penalty(action), next_observation, bool(terminated)
            )
            observation = next_observation
            self.steps += 1
            if self.replay.n >= self.options["learning_starts"]:
                for _ in range(self.options["gradient_steps"]):
                    self._update(rng)

    def _explore(self, observation: NDArray[Any], mask: NDArray[np.bool_], rng: np.random.Generator) -> int:
        progress = self.episode / (self.recipe["episodes"] * self.options["exploration_fraction"])
        epsilon = max(self.options["exploration_final_eps"], 1.0 - progress)
        if rng.random() < epsilon and mask.any():
            return int(rng.choice(np.flatnonzero(mask)))
        return self.greedy(observation)

    def greedy(self, observation: NDArray[Any]) -> int:
        """The action with the highest value."""
        with torch.no_grad():
            return int(self.network(torch.as_tensor(observation[None]))[0].argmax())

    def _penalty(self, action: int) -> float:
        """A small penalty for unusual shots, so that the simplest of equally good shots is learned.

        An object's actions are two trajectories with the same offsets: none, then a pair of each size.
        """
        prices, per_object = self.recipe["prices"], self.network.layout.per_object
        slot, shot = divmod(action, per_object)
        is_high, offset = divmod(shot, per_object // 2)
        return float(prices["object"] * (slot > 0) + prices["high"] * is_high + prices["offset"] * ((offset + 1) // 2))

    def _update(self, rng: np.random.Generator) -> None:
        options = self.options
        progress = self.episode / self.recipe["episodes"]
        beta = options["beta"] + (1.0 - options["beta"]) * progress
        at, weights = self.replay.sample(options["batch_size"], options["priority_exponent"], beta, rng)
        observations = self.replay.seen(at)
        actions = torch.as_tensor(self.replay.actions[at])
        goals = torch.as_tensor(self.replay.rewards[at])
        going_on = np.flatnonzero(~self.replay.terminated[at])
        goals[going_on] += options["gamma"] * self._next_values(self.replay.seen(at[going_on], is_next=True))
        values = self.network(observations).gather(1, actions[:, None])[:, 0]
        errors = torch.nn.functional.smooth_l1_loss(values, goals, reduction="none")
        loss = (errors * torch.as_tensor(weights)).mean()
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), options["max_grad_norm"])
        self.optimiser.step()
        self.replay.priorities[at] = (values - goals).abs().detach().numpy() + options["least_priority"]
        self.updates += 1
        self.losses.append(float(loss.detach()))
        if self.updates % options["target_update_interval"] == 0:
            self.target.load_state_dict(self.network.state_dict())

    def _next_values(self, states: torch.Tensor) -> torch.Tensor:
        """The target network's values of the network's actions; 0 where no action is possible."""
        with torch.no_grad():
            best_actions = self.network(states).argmax(dim=1, keepdim=True)
            values: torch.Tensor = self.target(states).gather(1, best_actions)[:, 0]
            return values.masked_fill(values <= MASKED_VALUE / 2, 0.0)

    def pass_rate(self, evaluation: dict[str, Any]) -> float:
        """The share of the evaluation's episodes that the greedy policy wins."""
        env = self._make_env(**evaluation.get("env_options", {}))
        won = 0
        for number in range(evaluation["episodes"]):
            observation, _ = env.reset(seed=evaluation["seed"] + number)
            ended, reward = False, 0.0
            while not ended:
                observation, reward, terminated, truncated, _ = env.step(self.greedy(observation))  # type: ignore[assignment]
                ended = terminated or truncated
            won += reward > 0
        env.close()
        return float(won / evaluation["episodes"])

    def load_best(self) -> None:
        """Load the weights of the best checkpoint."""
        self.network.load_state_dict({key: torch.as_tensor(value) for key, value in self.best_weights.items()})

    def save(self, file: Path) -> None:
        """Write a checkpoint; training resumed from it gives the same bits."""
        file.parent.mkdir(parents=True, exist_ok=True)
        n = min(self.replay.n, self.replay.capacity)
        names = (
            "observations", "pictures", "actions", "rewards", "next_observations", "next_pictures", "terminated",
            "priorities",
        )  # fmt: skip
        content = {
            "recipe": repr(self.recipe),
            "seed": self.seed,
            "counts": [self.episode, self.updates, self.steps, self.best_episode, self.replay.n],
            "best_rate": float(self.best_rate),
            "network": self.network.state_dict(),
            "target": self.target.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "best_weights": {key: torch.as_tensor(value) for key, value in self.best_weights.items()},
            "replay": {name: torch.as_tensor(getattr(self.replay, name)[:n]) for name in names},
        }
        unfinished = file.with_suffix(".new")
        torch.save(content, unfinished)
        unfinished.replace(file)

    def restore(self, file: Path) -> None:
        """Resume from a checkpoint; one of another recipe or seed is ignored."""
        try:
            content = load_tensors(file)
            if content["recipe"] == repr(self.recipe) and content["seed"] == self.seed:
                self._continue(content)
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError, UnusableFileError):
            raise BadAgentError(f"checkpoint '{file}' is damaged; delete it to train from the beginning") from None

    def _continue(self, content: dict[str, Any]) -> None:
        self.episode, self.updates, self.steps, self.best_episode, self.replay.n = content["counts"]
        self.best_rate = content["best_rate"]
        self.network.load_state_dict(content["network"])
        self.target.load_state_dict(content["target"])
        self.optimiser.load_state_dict(content["optimiser"])
        self.best_weights = {key: value.numpy() for key, value in content["best_weights"].items()}
        for name, values in content["replay"].items():
            getattr(self.replay, name)[: len(values)] = values.numpy()
