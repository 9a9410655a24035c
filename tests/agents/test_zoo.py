"""The shipped agents: cards, returns before the novelty, no torch; and the training that makes them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from stable_baselines3 import DQN, PPO, SAC

from nappingrl import agents
from nappingrl.agents import zoo
from nappingrl.agents.continuous import BoxMlpAgent
from nappingrl.agents.mlp import MlpAgent
from nappingrl.agents.training.evaluation import evaluate
from nappingrl.agents.training.sb3 import train
from nappingrl.errors import BadAgentError, BadSpecError, UnknownNameError
from nappingrl.files import write_whole

SHIPPED = [("cartpole", "dqn"), ("cartpole", "ppo"), ("crossroad", "dqn"), ("crossroad", "ppo")]
SHIPPED += [("crossroad", "sb3-dqn"), ("crossroad", "sb3-ppo")]
SHIPPED += [("mountaincar", name) for name in ("dqn", "ppo-strong", "ppo-unnormalised", "ppo-weak")]
ENVS = [("Acrobot-v1", "dqn"), ("MountainCarContinuous-v0", "sac"), ("Pendulum-v1", "sac")]
CONVERTED = [("cartpole", "zoo-dqn"), ("cartpole", "zoo-ppo")]
BIRDS = [("angrybirds", "dqn"), ("angrybirds", "dqn-raster"), ("angrybirds", "dqn-rel")]
FOLDER = Path(zoo.__file__).parent


def test_names() -> None:
    """The names, by domain and all together; mistakes get a hint."""
    assert agents.zoo_names("cartpole") == ["dqn", "ppo", "zoo-dqn", "zoo-ppo"]
    assert agents.zoo_names("crossroad") == ["dqn", "ppo", "sb3-dqn", "sb3-ppo"]
    assert agents.zoo_names("mountaincar") == ["dqn", "ppo-strong", "ppo-unnormalised", "ppo-weak"]
    assert agents.zoo_names("Acrobot-v1") == ["dqn"]
    trained, converted = ([f"{d}-{name}" for d, name in group] for group in (ENVS + BIRDS + SHIPPED, CONVERTED))
    assert agents.zoo_names() == sorted(trained + converted)
    assert sorted(zoo.recipes()) == sorted(trained)
    assert agents.load("cartpole-ppo").sha256 == agents.load("ppo", "cartpole").sha256
    allowed = r"'ppp'; allowed: dqn, hydra, ppo, zoo-dqn, zoo-ppo\. Did you mean 'ppo'\?.*SB3 \.zip"
    with pytest.raises(UnknownNameError, match=allowed):
        agents.load("ppp", "cartpole")
    with pytest.raises(UnknownNameError, match="has none"):
        agents.load("ppo", "nowhere")


@pytest.mark.parametrize(("domain", "name"), ENVS + SHIPPED)
def test_card(domain: str, name: str) -> None:
    """A card tells how the agent was made and what it reached; both are checked here."""
    card, agent = agents.card(domain, name), agents.load(name, domain)
    assert isinstance(agent, MlpAgent)
    assert (card["domain"], card["name"], card["sha256"]) == (domain, name, agent.sha256)
    assert card["command"] == f"napping train {domain} {name}"
    assert (agent.n_actions, list(agent.observation_shape or ())) == (card["n_actions"], card["observation_shape"])
    recipe = zoo.recipes()[f"{domain}-{name}"]
    assert card["recipe"].items() >= recipe.items()
    assert agent.hyperparameters()["gamma"] == card["recipe"]["hyperparameters"]["gamma"]
    assert agent.hyperparameters()["algorithm"] == card["algorithm"]
    returns = evaluate(agent, card["recipe"], 40, seed=77)
    assert returns.mean() == pytest.approx(
        card["pre_novelty_return"]["mean"], rel=0.15 if (domain, name) in ENVS else 0.06
    )
    if "bar" in recipe:
        assert card["pre_novelty_return"]["mean"] >= recipe["bar"]


@pytest.mark.parametrize(("domain", "name"), CONVERTED)
def test_converted_card(domain: str, name: str) -> None:
    """The card of an agent from elsewhere tells where it comes from and under which licence."""
    card, agent = agents.card(domain, name), agents.load(name, domain)
    assert isinstance(agent, MlpAgent)
    assert (card["domain"], card["name"], card["sha256"]) == (domain, name, agent.sha256)
    assert card["command"].startswith(f"napping convert {card['original']['file']} {domain} {name} ")
    assert "RL Baselines3 Zoo" in card["source"]
    assert card["licence"].startswith("MIT License\n\nCopyright")
    assert len(card["original"]["sha256"]) == 64
    assert evaluate(agent, card["recipe"], 40, seed=77).mean() == card["pre_novelty_return"]["mean"] == 200
    known = agent.hyperparameters()
    assert known["algorithm"] == card["algorithm"] == name.removeprefix("zoo-").upper()
    assert "unreadable" not in known


@pytest.mark.parametrize(("domain", "name"), BIRDS)
def test_birds_card(domain: str, name: str) -> None:
    """The agents with networks over objects pass what they were trained on, and levels they never saw."""
    card, agent = agents.card(domain, name), agents.load(name, domain)
    assert (card["domain"], card["name"], card["sha256"]) == (domain, name, agent.sha256)
    assert card["command"] == f"napping train {domain} {name}"
    assert (agent.n_actions, list(agent.observation_shape or ())) == (card["n_actions"], card["observation_shape"])
    assert card["recipe"] == zoo.recipes()[f"{domain}-{name}"]
    assert min(card["pass_rate"][levels] for levels in ("training levels", "held-out levels")) >= card["recipe"]["bar"]
    if name != "dqn-raster":  # which has one seed
        held_out = {one["seed"]: one["held-out levels"] for one in card["seeds"]}
        median = sorted(held_out.values())[1]
        assert held_out[card["seed"]] == median == card["pass_rate"]["held-out levels"]
    env = gymnasium.make(card["recipe"]["env"], reward="win", levels=(280, 350), **agent.domain_options)
    passed = 0
    for seed in range(21):
        observation, _ = env.reset(seed=seed, options={"params": {"template": 1 + seed % 7}})
        ended = False
        while not ended:
            observation, reward, ended, _, _ = env.step(agent.forward(observation[None]).actions[0])
        passed += reward > 0
    assert passed >= 19
    size = sum((FOLDER / f"{domain}-{name}.{suffix}").stat().st_size for suffix in ("npz", "json"))
    assert size < 10e6


def test_strength() -> None:
    """What the experiments rely on."""
    means = {key: agents.card(*key)["pre_novelty_return"] for key in SHIPPED}
    assert means["cartpole", "ppo"]["min"] == means["cartpole", "dqn"]["min"] == 200
    assert -105 < means["mountaincar", "dqn"]["mean"] < -80
    assert -120 < means["mountaincar", "ppo-strong"]["mean"] < -80
    assert means["mountaincar", "ppo-weak"]["max"] == means["mountaincar", "ppo-unnormalised"]["max"] == -500
    for key, least in (("Acrobot-v1", -100), ("Pendulum-v1", -200), ("MountainCarContinuous-v0", 90)):
        assert next(agents.card(*found)["pre_novelty_return"]["mean"] for found in ENVS if found[0] == key) >= least
    assert means["crossroad", "dqn"]["min"] == means["crossroad", "ppo"]["min"] == 1


def test_strong_without_its_normaliser() -> None:
    """Same weights, other eyes; easier worlds are within its reach."""
    strong, weak = agents.load("ppo-strong", "mountaincar"), agents.load("ppo-unnormalised", "mountaincar")
    assert strong.weights().keys() == weak.weights().keys()
    assert agents.load("ppo-strong", "mountaincar", normaliser=None).sha256 == weak.sha256 != strong.sha256
    env = gymnasium.make("nappingrl/MountainCar-v0")
    observation, _ = env.reset(seed=3, options={"params": {"force": 0.005}})
    total, done = 0, False
    while not done:
        action = weak.forward(observation[None]).actions[0]
        observation, _, terminated, truncated, _ = env.step(action)
        total, done = total + 1, terminated or truncated
    assert total < 500


def test_weights_of_numbers_fit_sb3() -> None:
    """All tensors of SAC's actor and critics are there; SB3 acts as we do with them."""
    import torch

    for domain, name in ENVS[1:]:
        agent, recipe = agents.load(name, domain), agents.card(domain, name)["recipe"]
        assert isinstance(agent, BoxMlpAgent)
        env, use_sde = gymnasium.make(domain), recipe["hyperparameters"].get("use_sde", False)
        policy = {"net_arch": recipe["net_arch"], **recipe.get("policy", {})}
        model: Any = SAC("MlpPolicy", env, policy_kwargs=policy, use_sde=use_sde, buffer_size=10, device="cpu")
        model.policy.load_state_dict({key: torch.from_numpy(value) for key, value in agent.weights().items()})
        observations = np.stack([env.observation_space.sample() for _ in range(100)])
        wanted, _ = model.predict(observations, deterministic=True)
        np.testing.assert_allclose(agent.forward(observations).actions, wanted, atol=1e-4)


@pytest.mark.parametrize(("domain", "name"), SHIPPED)
def test_weights_fit_sb3(domain: str, name: str, parity: Any) -> None:
    """All tensors of the policy are there, under SB3's names: a learner can go on from them."""
    import torch

    agent, card = agents.load(name, domain), agents.card(domain, name)
    algorithm = {"PPO": PPO, "DQN": DQN}[card["algorithm"]]
    env = gymnasium.make(card["recipe"]["env"])
    model: Any = algorithm("MlpPolicy", env, policy_kwargs={"net_arch": card["recipe"]["net_arch"]}, device="cpu")
    model.policy.load_state_dict({key: torch.from_numpy(value) for key, value in agent.weights().items()})
    assert isinstance(agent, MlpAgent)
    observations = np.stack([env.observation_space.sample() for _ in range(100)])
    observations = np.clip(observations, -2, 2)
    fed = observations if agent.normaliser is None else agent.normaliser(observations)
    parity(agent, model, observations, fed, varied=name != "ppo-unnormalised")


def test_no_torch() -> None:
    """A shipped agent acts without torch or SB3 being loaded; the package alone loads not even numba."""
    code = """
import sys
import nappingrl.agents
assert not {"torch", "stable_baselines3", "numba"} & set(sys.modules)
import numpy
for name in nappingrl.agents.zoo_names():
    if name.startswith("angrybirds-"):
        continue  # their networks are torch's
    agent = nappingrl.agents.load(name)
    agent.forward(numpy.zeros((3, *agent.observation_shape), numpy.float32))
assert not {"torch", "stable_baselines3"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_without_torch_installed(tmp_path: Path) -> None:
    """An SB3 zip without torch: one line that says what to install."""
    code = f"""
import sys
sys.modules["torch"] = None
from nappingrl import agents, errors
try:
    agents.load({str(tmp_path / "agent.zip")!r})
except errors.MissingExtraError as error:
    assert "torch" in str(error) and "nappingrl[sb3]" in str(error), error
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_card_and_weights_of_two_trainings_are_never_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever moment a training is killed at, its agent is whole or absent."""
    for suffix in (".npz", ".json"):
        shutil.copy(Path(zoo.__file__).parent / f"cartpole-ppo{suffix}", tmp_path)
    card = tmp_path / "cartpole-ppo.json"
    about = json.loads(card.read_text())
    zoo.load_card(card)

    def cut_off(path: Path, data: bytes) -> None:
        if path == card:
            raise KeyboardInterrupt
        write_whole(path, data)

    monkeypatch.setattr(zoo, "write_whole", cut_off)
    with pytest.raises(KeyboardInterrupt):
        zoo.save("cartpole-ppo", {"weight": np.ones(3)}, about, tmp_path)
    with pytest.raises(BadAgentError, match="does not exist"):
        zoo.load_card(card)


def test_damage_is_noticed(tmp_path: Path) -> None:
    """Weights that do not match their card are refused."""
    for suffix in ("npz", "json"):
        shutil.copy(FOLDER / f"cartpole-ppo.{suffix}", tmp_path)
    assert zoo.load("ppo", "cartpole", folder=tmp_path).n_actions == 2
    card = json.loads((tmp_path / "cartpole-ppo.json").read_text())
    (tmp_path / "cartpole-ppo.json").write_text(json.dumps(card | {"sha256": "0"}))
    with pytest.raises(BadAgentError, match="sha256"):
        zoo.load("ppo", "cartpole", folder=tmp_path)
    content = (tmp_path / "cartpole-ppo.npz").read_bytes()
    (tmp_path / "cartpole-ppo.npz").write_bytes(content[:1000])
    with pytest.raises(BadAgentError, match="damaged"):
        zoo.load("ppo", "cartpole", folder=tmp_path)


@pytest.mark.parametrize(
    ("domain", "name"), [("cartpole", "ppo"), ("cartpole", "dqn"), ("mountaincar", "ppo-unnormalised")]
)
def test_training(domain: str, name: str, tmp_path: Path) -> None:
    """A short training gives an agent with a card, the same one again from the same seed."""
    seen: list[tuple[int, int]] = []
    returns: dict[int, float] = {}
    options: Any = {"on_progress": lambda *told: seen.append(told), "on_evaluation": returns.__setitem__}
    cards = [train(domain, name, tmp_path / str(i), 3, 1200, **options) for i in range(2)]
    assert cards[0] == cards[1]
    assert cards[0]["command"] == f"napping train {domain} {name} --seed 3 --steps 1200"
    assert (cards[0]["seed"], cards[0]["total_steps"]) == (3, 1200)
    assert seen[-1] == (1200, 1200)
    assert returns[cards[0]["checkpoint_step"]] == max(returns.values())
    assert zoo.load(name, domain, folder=tmp_path / "0").sha256 == cards[0]["sha256"]
    assert json.loads((tmp_path / "0" / f"{domain}-{name}.json").read_text())["seed"] == 3
    for file in (tmp_path / "0").iterdir():
        assert file.read_bytes() == (tmp_path / "1" / file.name).read_bytes()


def test_training_of_numbers(tmp_path: Path) -> None:
    """The card of an agent whose actions are numbers tells where they lie."""
    card = train("Pendulum-v1", "sac", tmp_path, 3, 120)
    assert (card["n_actions"], card["action_box"]["low"], card["action_box"]["high"]) == (0, [-2.0], [2.0])
    assert card["command"] == "napping train Pendulum-v1 sac --seed 3 --steps 120"
    agent = agents.load(str(tmp_path / "Pendulum-v1-sac.json"))
    assert isinstance(agent, BoxMlpAgent)
    assert agent.sha256 == card["sha256"]
    wide = json.loads((tmp_path / "Pendulum-v1-sac.json").read_text()) | {
        "action_box": card["action_box"] | {"low": [-9]}
    }
    (tmp_path / "Pendulum-v1-sac.json").write_text(json.dumps(wide))
    with pytest.raises(BadAgentError, match="sha256"):
        agents.load(str(tmp_path / "Pendulum-v1-sac.json"))


def test_training_mistakes(tmp_path: Path) -> None:
    """Wrong names and numbers, each in one line."""
    with pytest.raises(UnknownNameError, match="Did you mean 'cartpole'"):
        train("cartpol", "ppo", tmp_path)
    with pytest.raises(UnknownNameError, match=r"allowed: Acrobot-v1, .*Did you mean 'Pendulum-v1'"):
        train("Pendulum-v2", "sac", tmp_path)
    with pytest.raises(UnknownNameError, match="Did you mean 'ppo-strong'"):
        train("mountaincar", "ppo-stron", tmp_path)
    with pytest.raises(BadSpecError, match="--steps 0 is not"):
        train("cartpole", "ppo", tmp_path, total_steps=0)
