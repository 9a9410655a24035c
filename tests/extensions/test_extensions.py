"""A user's own domain, agent, method and detector appear everywhere: by `register`, and by entry points."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import nappingrl
from extensions import toy_package
from nappingrl.registry import REGISTRIES, unregister
from nappingrl.testing import check_detector, check_domain, check_method
from patience import PATIENCE

ENTRIES = {
    "domain": ("lane", toy_package.Lane),
    "agent": ("lane-driver", toy_package.Driver),
    "method": ("opposite", toy_package.Opposite),
    "detector": ("short-episodes", toy_package.ShortEpisodes),
}
TESTS = Path(__file__).parents[1]
RUN = ["run", "lane", "--trials", "260", "--protocol", "2+4", "--detector", "short-episodes", "--workers", "2"]


@pytest.fixture
def registered() -> Iterator[None]:
    for kind, (name, target) in ENTRIES.items():
        nappingrl.register(kind, name, target)
    yield
    for kind, (name, _) in ENTRIES.items():
        unregister(kind, name)


@pytest.mark.usefixtures("registered")
def test_registered_things_keep_their_contracts() -> None:
    check_domain("lane")
    check_method("opposite")
    check_detector("short-episodes")


@pytest.mark.usefixtures("registered")
def test_they_have_a_title_a_colour_and_a_marker_that_no_other_has() -> None:
    for kind, (name, _) in ENTRIES.items():
        entry = REGISTRIES[kind].entry(name)
        assert entry.title == name
        others = [other for other in REGISTRIES[kind].entries() if other.name != name]
        assert entry.colour not in {other.colour for other in others}
        assert entry.marker
        assert entry in nappingrl.list_available(kind)[kind]


@pytest.mark.usefixtures("registered")
def test_the_environment_is_registered_with_gymnasium() -> None:
    import gymnasium

    env = gymnasium.make("nappingrl/lane-v0")
    env.reset(seed=0)
    assert env.spec is not None
    assert env.spec.max_episode_steps == 10


def test_unregister_takes_the_environment_back() -> None:
    import gymnasium

    nappingrl.register("domain", "lane", toy_package.Lane)
    unregister("domain", "lane")
    assert "nappingrl/lane-v0" not in gymnasium.registry


@pytest.mark.parametrize(
    ("kind", "name", "facts", "text"),
    [
        ("methd", "x", {}, "unknown kind 'methd'.*Did you mean 'method'"),
        ("method", "napping", {}, "a method called 'napping' is registered already"),
        ("method", "a b", {}, "other characters"),
        ("method", "x", {"color": "red"}, "unknown fact of a method 'color'.*Did you mean 'colour'"),
        ("method", "x", {"role": "hero"}, "unknown role 'hero'"),
    ],
)
def test_bad_registrations_are_refused_in_one_line(kind: str, name: str, facts: dict[str, str], text: str) -> None:
    with pytest.raises(nappingrl.NappingError, match=text) as caught:
        nappingrl.register(kind, name, toy_package.Opposite, **facts)
    assert "\n" not in str(caught.value)


SCRIPT = """
import nappingrl
from extensions.toy_package import Driver, Lane, Opposite, ShortEpisodes

for kind, name, target in (("domain", "lane", Lane), ("agent", "lane-driver", Driver), ("method", "opposite", Opposite),
                           ("detector", "short-episodes", ShortEpisodes)):
    nappingrl.register(kind, name, target)
"""
MAIN = """
if __name__ == "__main__":
    import sys
    from nappingrl.cli import main

    main(sys.argv[1:])
"""


def make_distribution(folder: Path) -> None:
    """What an installer would leave: a module, and metadata with entry points."""
    (folder / "toy_package.py").write_text((TESTS / "extensions" / "toy_package.py").read_text("utf-8"), "utf-8")
    info = folder / "toy_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-package\nVersion: 1.0\n", "utf-8")
    groups = [
        f"[nappingrl.{kind}s]\n{name} = toy_package:{target.__name__}\n" for kind, (name, target) in ENTRIES.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(groups), "utf-8")


@pytest.fixture(params=["registered by a script", "entry points of a package"])
def napping_with_toys(request: pytest.FixtureRequest, tmp_path: Path) -> "Toys":
    """A command line that knows the toys, in a separate process."""
    script = tmp_path / "napping_with_toys.py"
    if request.param.startswith("registered"):
        script.write_text(SCRIPT + MAIN, "utf-8")
        path = [str(TESTS)]
    else:
        make_distribution(tmp_path)
        script.write_text(MAIN, "utf-8")
        path = [str(tmp_path)]
    return Toys(script, os.pathsep.join([*path, *filter(None, [os.environ.get("PYTHONPATH")])]), tmp_path)


class Toys:
    """Runs commands."""

    def __init__(self, script: Path, path: str, folder: Path) -> None:
        self.script, self.folder = script, folder
        self.environment = os.environ | {"PYTHONPATH": path, "MPLBACKEND": "Agg"}

    def __call__(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, str(self.script), *words],
            cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert done.returncode in (0, 1 if words[0] == "paper" else 0), done.stderr
        return done.stdout


def test_the_command_line_knows_them(napping_with_toys: Toys) -> None:
    listed = json.loads(napping_with_toys("list", "--json"))
    assert listed["domains"]["lane"]["agents"] == ["driver"]
    assert listed["methods"]["opposite"]["about"].startswith("Does the opposite")
    assert "short-episodes" in listed["detectors"]
    assert "lane" in napping_with_toys("list")
    for method in ("frozen", "opposite"):
        summary = json.loads(napping_with_toys(*RUN, "--method", method, "--out", method, "--json"))
        assert (summary["domain"], summary["method"]) == ("lane", method)
    assert summary["last10_mean"] > 5, "the opposite is right after the novelty"
    for figure in ("overall", "by-novelty", "by-parameter"):
        napping_with_toys("figure", figure, "frozen", "opposite", "--out", f"{figure}.png")
        assert (napping_with_toys.folder / f"{figure}.png").stat().st_size > 5000
    napping_with_toys("report", "frozen", "opposite", "--out", "report")
    page = (napping_with_toys.folder / "report" / "report.html").read_text("utf-8")
    colour = nappingrl.registry.PALETTE[0]
    assert "opposite" in page
    assert colour in page, "the method has its own colour"


def test_the_evaluation_takes_the_domain(napping_with_toys: Toys) -> None:
    napping_with_toys("paper", "--domains", "lane", "--scale", "quick", "--out", "evaluation", "--workers", "1")
    runs = {path.name for path in (napping_with_toys.folder / "evaluation" / "runs").iterdir() if path.is_dir()}
    assert {"lane-driver-frozen", "lane-driver-napping"} <= runs


def test_a_changed_package_is_another_run(napping_with_toys: Toys) -> None:
    """The source of a domain from outside is part of a run's identity."""
    if not (napping_with_toys.folder / "toy_package.py").exists():
        pytest.skip("the module of a script's registration is not in a folder of this test")
    words = ["run", "lane", "--trials", "2", "--protocol", "0+1", "--method", "frozen", "--out", "r"]
    napping_with_toys(*words)
    module = napping_with_toys.folder / "toy_package.py"
    module.write_text(module.read_text("utf-8").replace("horizon=10", "horizon=7"), "utf-8")
    with pytest.raises(AssertionError, match="source has changed"):
        napping_with_toys(*words)


def test_a_package_that_cannot_be_loaded_is_named_in_one_line(napping_with_toys: Toys) -> None:
    if not (napping_with_toys.folder / "toy_package.py").exists():
        pytest.skip("only packages with entry points are loaded by nappingrl")
    (napping_with_toys.folder / "toy_package.py").write_text("import no_such_module\n", "utf-8")
    done = subprocess.run(
        [sys.executable, str(napping_with_toys.script), "list"], cwd=napping_with_toys.folder,
        env=napping_with_toys.environment, capture_output=True, text=True, timeout=PATIENCE, check=True,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert "domain 'lane' of package toy-package cannot be loaded (ModuleNotFoundError" in done.stderr
    assert "cartpole" in done.stdout


@pytest.mark.usefixtures("registered")
def test_figures_tell_methods_of_a_registered_agent_apart() -> None:
    from nappingrl.report.looks import looks

    runs = [nappingrl.run("lane", "driver", method, trials=2, protocol="0+1") for method in ("frozen", "napping")]
    shown = looks(runs)
    assert len({look.colour for look in shown}) == len({look.label for look in shown}) == 2
