"""Dueling double DQN with prioritised replay, for worlds with a mask of actions; stops and goes on where it was."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

from nappingrl.agents.object_networks import NEVER, make_network
from nappingrl.agents.torch_agent import to_numpy

OnProgress = Callable[[int, int], None]
OnEvaluation = Callable[[int, float], None]


@dataclass
class Replay:
    """All transitions so far, drawn in proportion to their last error."""

    capacity: int
    observations: NDArray[np.float32]
    actions: NDArray[np.int64]
    rewards: NDArray[np.float32]
    following: NDArray[np.float32]
    ended: NDArray[np.bool_]
    priorities: NDArray[np.float64]
    n: int = 0

    @classmethod
    def empty(cls, capacity: int, n_observations: int) -> "Replay":
        """With room for `capacity` transitions."""
        shape = (capacity, n_observations)
        return cls(
            capacity, np.zeros(shape, np.float32), np.zeros(capacity, np.int64), np.zeros(capacity, np.float32),
            np.zeros(shape, np.float32), np.zeros(capacity, np.bool_), np.zeros(capacity),
        )  # fmt: skip

    def add(self, *parts: Any) -> None:
        """One transition, as likely to be drawn as the likeliest."""
        at = self.n % self.capacity
        stored: tuple[NDArray[Any], ...] = (self.observations, self.actions, self.rewards, self.following, self.ended)
        for array, part in zip(stored, parts, strict=True):
            array[at] = part
        self.priorities[at] = self.priorities.max(initial=1.0)
        self.n += 1

    def draw(
        self, size: int, exponent: float, beta: float, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Which transitions, and their importance weights."""
        shares = self.priorities[: min(self.n, self.capacity)] ** exponent
        shares /= shares.sum()
        at = rng.choice(len(shares), size, p=shares)
        weights = (len(shares) * shares[at]) ** -beta
        return at, (weights / weights.max()).astype(np.float32)


class Trainer:
    """One training run by a recipe; all randomness follows from the recipe's seed and the number of the episode."""

    def __init__(self, recipe: dict[str, Any], seed: int, curves: Path | None = None) -> None:
        self._curves = curves
        self.recipe, self.seed, self.options = recipe, seed, recipe["hyperparameters"]
        torch.manual_seed(seed)
        self.network, self.target = make_network(recipe["network"]), make_network(recipe["network"])
        self.target.load_state_dict(self.network.state_dict())
        self.optimiser = torch.optim.Adam(self.network.parameters(), self.options["learning_rate"])
        self.replay = Replay.empty(self.options["buffer_size"], self.network.layout.n_observations)
        self.episode = self.updates = self.steps = 0
        self.best, self.best_episode, self.best_weights = -np.inf, 0, to_numpy(self.network.state_dict())
        self.losses: list[float] = []

    def run(self, folder: Path, on_progress: OnProgress | None, on_evaluation: OnEvaluation | None) -> None:
        """Train to the end, with a checkpoint at every evaluation; go on from one that is there."""
        total, file = self.recipe["episodes"], folder / "checkpoint.pt"
        if file.is_file():
            self.restore(file)
        env = gymnasium.make(self.recipe["env"], **self.recipe["env_options"])
        while self.episode < total:
            self._play(env, np.random.default_rng([self.seed, self.episode]))
            self.episode += 1
            if on_progress is not None:
                on_progress(self.episode, total)
            if self.episode % self.recipe["evaluate_every"] == 0 or self.episode == total:
                rate = self.pass_rate(self.recipe["evaluation"])
                if rate >= self.best:
                    self.best, self.best_episode = rate, self.episode
                    self.best_weights = to_numpy(self.network.state_dict())
                if on_evaluation is not None:
                    on_evaluation(self.episode, rate)
                self._write_curves(rate)
                self.save(file)
        env.close()
        file.unlink(missing_ok=True)

    def _write_curves(self, rate: float) -> None:
        """The pass rate and the mean loss since the last time, for TensorBoard."""
        if self._curves is not None:
            from torch.utils.tensorboard import SummaryWriter

            with SummaryWriter(str(self._curves)) as writer:
                writer.add_scalar("evaluation/pass_rate", rate, self.episode)
                writer.add_scalar("train/loss", np.mean(self.losses or [0.0]), self.episode)
        self.losses = []

    def _play(self, env: gymnasium.Env[Any, Any], rng: np.random.Generator) -> None:
        """One episode with an update after every step."""
        observation, info = env.reset(seed=int(rng.integers(2**31)))
        ended = False
        while not ended:
            action = self._explore(observation, info["action_mask"], rng)
            following, reward, terminated, truncated, info = env.step(action)
            ended = terminated or truncated
            self.replay.add(observation, action, float(reward) - self._price(action), following, terminated)
            observation = following
            self.steps += 1
            if self.replay.n >= self.options["learning_starts"]:
                for _ in range(self.options["gradient_steps"]):
                    self._update(rng)

    def _explore(self, observation: NDArray[Any], mask: NDArray[np.bool_], rng: np.random.Generator) -> int:
        share = self.episode / (self.recipe["episodes"] * self.options["exploration_fraction"])
        epsilon = max(self.options["exploration_final_eps"], 1.0 - share)
        if rng.random() < epsilon and mask.any():
            return int(rng.choice(np.flatnonzero(mask)))
        return self.greedy(observation)

    def greedy(self, observation: NDArray[Any]) -> int:
        """The action of the greatest value."""
        with torch.no_grad():
            return int(self.network(torch.as_tensor(observation[None]))[0].argmax())

    def _price(self, action: int) -> float:
        """A price of everything but the plainest shot: of shots that work as well it is the one to learn.

        An object's actions are two trajectories with the same offsets: none, then a pair of each size.
        """
        prices, per_object = self.recipe["prices"], self.network.layout.per_object
        slot, way = divmod(action, per_object)
        is_high, offset = divmod(way, per_object // 2)
        return float(prices["object"] * (slot > 0) + prices["high"] * is_high + prices["offset"] * ((offset + 1) // 2))

    def _update(self, rng: np.random.Generator) -> None:
        options, done = self.options, self.episode / self.recipe["episodes"]
        beta = options["beta"] + (1.0 - options["beta"]) * done
        at, weights = self.replay.draw(options["batch_size"], options["priority_exponent"], beta, rng)
        observations, following = (torch.as_tensor(a[at]) for a in (self.replay.observations, self.replay.following))
        actions, rewards = torch.as_tensor(self.replay.actions[at]), torch.as_tensor(self.replay.rewards[at])
        with torch.no_grad():
            wanted = self.network(following).argmax(dim=1, keepdim=True)
            later = self.target(following).gather(1, wanted)[:, 0]
            later = later.masked_fill(torch.as_tensor(self.replay.ended[at]) | (later <= NEVER / 2), 0.0)
            goals = rewards + options["gamma"] * later
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

    def pass_rate(self, evaluation: dict[str, Any]) -> float:
        """Share of episodes that the greedy policy wins: `episodes` of the environment with the given options."""
        env = gymnasium.make(self.recipe["env"], **(self.recipe["env_options"] | evaluation.get("env_options", {})))
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

    def keep_best(self) -> None:
        """Put the weights of the best checkpoint back."""
        self.network.load_state_dict({key: torch.as_tensor(value) for key, value in self.best_weights.items()})

    def save(self, file: Path) -> None:
        """Everything that is needed to go on, so that stopping changes nothing."""
        file.parent.mkdir(parents=True, exist_ok=True)
        n = min(self.replay.n, self.replay.capacity)
        names = ("observations", "actions", "rewards", "following", "ended", "priorities")
        content = {
            "recipe": repr(self.recipe),
            "seed": self.seed,
            "counts": [self.episode, self.updates, self.steps, self.best_episode, self.replay.n],
            "best": float(self.best),
            "network": self.network.state_dict(),
            "target": self.target.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "best_weights": {key: torch.as_tensor(value) for key, value in self.best_weights.items()},
            "replay": {name: torch.as_tensor(getattr(self.replay, name)[:n]) for name in names},
        }
        whole = file.with_suffix(".new")
        torch.save(content, whole)
        whole.replace(file)

    def restore(self, file: Path) -> None:
        """Go on from a checkpoint of the same recipe and seed; one of another is left alone."""
        content = torch.load(file, weights_only=True)
        if content["recipe"] != repr(self.recipe) or content["seed"] != self.seed:
            return
        self.episode, self.updates, self.steps, self.best_episode, self.replay.n = content["counts"]
        self.best = content["best"]
        self.network.load_state_dict(content["network"])
        self.target.load_state_dict(content["target"])
        self.optimiser.load_state_dict(content["optimiser"])
        self.best_weights = {key: value.numpy() for key, value in content["best_weights"].items()}
        for name, values in content["replay"].items():
            getattr(self.replay, name)[: len(values)] = values.numpy()
