"""`import nappingrl` is light, and its public names work."""

import subprocess
import sys

import pytest

import nappingrl

HEAVY = (
    "numpy", "gymnasium", "torch", "matplotlib", "polars", "stable_baselines3", "numba", "pygame", "tyro", "ray",
    "scipy.stats",
)  # fmt: skip


def loaded_after(code: str) -> set[str]:
    """Which of the heavy packages a fresh interpreter has loaded after the code."""
    report = f"import sys; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_after("import nappingrl") == set()


def test_the_environments_come_without_torch_polars_and_matplotlib() -> None:
    code = "import gymnasium, nappingrl; gymnasium.make('nappingrl/CartPole-v0').reset(seed=0)"
    assert loaded_after(code).isdisjoint({"torch", "polars", "matplotlib", "stable_baselines3", "pygame"})


@pytest.mark.parametrize("first", ["gymnasium, nappingrl", "nappingrl, gymnasium"])
def test_gymnasium_knows_the_environments_whichever_is_imported_first(first: str) -> None:
    own = "nappingrl.register('domain', 'own', 'nappingrl.domains.cartpole:CartPole')"
    code = f"import {first}; print(*[one for one in gymnasium.registry if one.startswith('nappingrl/')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(done.stdout.split()) == 4
    code = f"import nappingrl; {own}; import gymnasium; gymnasium.make('nappingrl/own-v0').reset(seed=0)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_help_loads_nothing_heavy() -> None:
    code = "import contextlib, io\nfrom nappingrl.cli import main\nfor words in (['--help'], ['run', '--help']):\n"
    quietly = "contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit)"
    assert loaded_after(f"{code}    with {quietly}:\n        main(words)") == set()


def test_the_command_line_starts_without_torch_and_matplotlib() -> None:
    assert loaded_after("import nappingrl.cli").isdisjoint({"torch", "matplotlib", "stable_baselines3", "pygame"})


def test_running_trials_needs_no_torch() -> None:
    code = "import nappingrl; nappingrl.run, nappingrl.NappingAgent, nappingrl.Method"
    assert loaded_after(code).isdisjoint({"torch", "matplotlib", "stable_baselines3", "pygame", "ray", "scipy.stats"})


PUBLIC = {
    "AdaptationWarning", "Agent", "Detector", "Domain", "DomainSpec", "Method", "NappingAgent", "NappingError",
    "Novelty", "Option", "Score", "TorchAgent", "__version__", "apply_novelty", "list_available", "load_agent",
    "read_run", "register", "run", "Run", "write_report",
}  # fmt: skip


def test_dir_lists_the_public_names() -> None:
    assert set(nappingrl.__all__) == set(dir(nappingrl)) == PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC - {"__version__"}))
def test_public_names_are_found_on_first_use(name: str) -> None:
    assert callable(getattr(nappingrl, name))


def test_public_names_are_what_they_say() -> None:
    from nappingrl.agent import NappingAgent
    from nappingrl.agents import load_agent
    from nappingrl.report.page import write_report
    from nappingrl.report.runs import Run, read_run, run
    from nappingrl.score import Score

    assert nappingrl.NappingAgent is NappingAgent
    assert nappingrl.load_agent is load_agent
    assert nappingrl.Score is Score
    assert nappingrl.run is run
    assert nappingrl.Run is Run
    assert nappingrl.read_run is read_run
    assert nappingrl.write_report is write_report


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(
        AttributeError, match=r"module 'nappingrl' has no attribute 'NapingAgent'\. Did you mean 'NappingAgent'"
    ):
        _ = nappingrl.NapingAgent
    assert not hasattr(nappingrl, "nothing")


def test_star_import_gives_the_public_names() -> None:
    names: dict[str, object] = {}
    exec("from nappingrl import *", names)
    assert set(nappingrl.__all__) <= set(names)


def test_the_version_is_that_of_the_distribution() -> None:
    from importlib.metadata import version

    assert nappingrl.__version__ == version("nappingrl")
