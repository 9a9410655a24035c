"""Whole episodes in a kernel give the bits of the engine's ticks."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from polars.testing import assert_frame_equal

from nappingrl._build import kernel
from nappingrl.agents import load
from nappingrl.domains.cartpole import CartPole, euler_step
from nappingrl.domains.compiled import make_kernels, observe_state
from nappingrl.methods.base import Method
from nappingrl.registry import methods, register, unregister
from nappingrl.trials.engine import Engine
from nappingrl.trials.spec import RunSpec

WITH_KERNEL = {"frozen", "napping", "napping-no-memory"}
CASES: list[tuple[str, str, str, dict[str, Any]]] = [
    ("cartpole", "ppo", "frozen", {}),
    ("cartpole", "ppo", "napping", {"detector": "rolling-mean"}),
    ("cartpole", "dqn", "napping", {"score": "lean-drop-0.2"}),
    *(("cartpole", "ppo", "napping", {"options": {"rule": rule}}) for rule in ("printed", "text", "fallback")),
    ("cartpole", "ppo", "napping", {"options": {"search": "same-key", "layer": 1}}),
    ("cartpole", "ppo", "napping", {"protocol": "1+4+2+4"}),
    ("cartpole", "ppo", "napping-no-memory", {}),
    ("mountaincar", "dqn", "napping", {"protocol": "1+3", "trials": 3}),
    ("mountaincar", "ppo-strong", "napping", {"protocol": "1+3", "trials": 3}),
    ("crossroad", "dqn", "frozen", {}),
    ("crossroad", "dqn", "napping", {"novelty": "all", "trials": 1}),
    ("crossroad", "ppo", "napping", {"score": "progress", "options": {"space": "raw"}}),
]


def both(domain: str, agent: str, method: str, slots: int = 10, **options: Any) -> tuple[Engine, Engine]:
    """The same trials in the kernel and by ticks; checks that the rows are the same."""
    options = {"trials": 6, "protocol": "2+8", "detector": "given", "seed": 17} | options
    spec = RunSpec(domain, agent, method, **options).complete()
    engines = [Engine(spec, load(agent, domain), slots=slots, is_compiled=is_compiled) for is_compiled in (True, False)]
    assert [engine.is_compiled for engine in engines] == [True, False]
    compiled, by_ticks = (engine.run_trials(spec.trial_specs()) for engine in engines)
    assert_frame_equal(compiled, by_ticks, check_exact=True)
    return engines[0], engines[1]


@pytest.mark.parametrize(("domain", "agent", "method", "options"), CASES)
def test_a_kernel_gives_the_bits_of_ticks(domain: str, agent: str, method: str, options: dict[str, Any]) -> None:
    compiled, by_ticks = both(domain, agent, method, **options)
    assert_same_state(compiled.method.state(), by_ticks.method.state())
    assert_same_state(compiled.adaptation.filter.arrays._asdict(), by_ticks.adaptation.filter.arrays._asdict())
    if method == "napping":
        assert compiled.method.regions(np.arange(10))[0].any()


def test_trials_that_wait_for_a_slot_have_the_same_rows() -> None:
    both("cartpole", "ppo", "napping", slots=2)


def assert_same_state(first: dict[str, NDArray[Any]], second: dict[str, NDArray[Any]]) -> None:
    assert first.keys() == second.keys()
    for name, array in first.items():
        assert array.tobytes() == second[name].tobytes(), name


def test_every_method_with_a_kernel_is_compared() -> None:
    found = {name for name in methods.names() if methods.get(name).compiled is not Method.compiled}
    assert found == WITH_KERNEL
    assert found == {method for _, _, method, _ in CASES}


@pytest.mark.parametrize(
    "options",
    [
        {"detector": "ks"},  # alarms within episodes
        {"options": {"choice": "preference"}},
        {"options": {"max_regions": 50}},
        {"method": "napping", "guard": True},
        {"domain": "mountaincar", "agent": "dqn", "score": "energy"},  # a score in numpy
        {"method": "napping-ucb"},
    ],
)
def test_what_has_no_kernel_runs_by_ticks(options: dict[str, Any]) -> None:
    options = {"domain": "cartpole", "agent": "ppo", "method": "napping", "trials": 1} | options
    spec = RunSpec(**options).complete()
    assert not Engine(spec, load(spec.agent, spec.domain), slots=1).is_compiled


@kernel()
def glitch(state: NDArray[np.float64], parameters: NDArray[np.float64], action: int) -> tuple[float, bool]:
    """CartPole, but the first sensor fails for a moment now and then."""
    has_failed = state[0] > 1e15
    if has_failed:
        state[0] = 0.0
    is_over = euler_step(state, parameters, action)
    if not is_over and not has_failed and abs(state[3]) > 0.25:
        state[0] = 1e16
    return 1.0, is_over


class Glitch(CartPole):
    """CartPole with a sensor that fails."""

    kernels = make_kernels(glitch, observe_state)


@pytest.fixture
def glitch_domain() -> Iterator[None]:
    register("domain", "glitch", Glitch, env_id="test/Glitch-v0")
    yield
    unregister("domain", "glitch")


@pytest.mark.usefixtures("glitch_domain")
def test_steps_that_are_not_fit_to_learn_from_are_left_to_ticks() -> None:
    spec = RunSpec("glitch", "ppo", "napping", trials=4, protocol="1+4", detector="given", novelty="physics").complete()
    agent = load("ppo", "cartpole")
    compiled, by_ticks = (Engine(spec, agent, slots=4, is_compiled=is_compiled) for is_compiled in (True, False))
    rows = compiled.run_trials(spec.trial_specs())
    assert compiled.is_compiled
    assert rows["status"].str.contains("dropped").any()
    assert_frame_equal(rows, by_ticks.run_trials(spec.trial_specs()), check_exact=True)
    assert_same_state(compiled.method.state(), by_ticks.method.state())
