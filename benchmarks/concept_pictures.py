"""The pictures of the concept pages, drawn from real episodes of CartPole.

python benchmarks/concept_pictures.py docs/images

detectors.png: the statistic of the detector, step by step. contexts.png: a world that changes back and forth.
auto.png: who plays after a change. guard.png: random actions with and without a guard. foresight.png: what the model
predicts beside what happens.
"""

import argparse
from pathlib import Path

import gymnasium
import numpy as np
import polars as pl

import nappingrl
from nappingrl.report.figures.style import FAILED, TWO_COLUMNS, add_legend, new_canvas, save, style

ENV, HEIGHT, DPI = "nappingrl/CartPole-v0", 2.2, 150
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#777777"


def make_world(force: float) -> gymnasium.Env:
    """A CartPole; its force is 10 before the change."""
    return nappingrl.apply_novelty(gymnasium.make(ENV), f"force={force}") if force != 10.0 else gymnasium.make(ENV)


def calibrated(**options: str) -> nappingrl.NappingAgent:
    """The shipped PPO agent, which knows ten episodes of the unchanged world."""
    agent = nappingrl.NappingAgent("ppo", domain="cartpole", **options)
    agent.calibrate(gymnasium.make(ENV), episodes=10, seed=1)
    return agent


def play(agent: nappingrl.NappingAgent, force: float, seed: int, on_step=lambda observation: None) -> float:
    """The return of one episode."""
    env = agent.wrap(make_world(force))
    observation, _ = env.reset(seed=seed)
    total, is_over = 0.0, False
    while not is_over:
        observation, reward, terminated, truncated, _ = env.step(agent.predict(observation)[0])
        total, is_over = total + reward, terminated or truncated
        on_step(observation)
    return total


def draw_detectors(path: Path) -> None:
    """The residual detector in an episode of the old world, and in two of the changed one."""
    agent, values, ends, alarm, limit = calibrated(), [], [], None, 1.0

    def note(_: object) -> None:
        nonlocal alarm, limit
        gauge = agent.detector.gauge(0)
        values.append(np.nan if gauge is None else gauge.value)
        limit = gauge.high if gauge is not None and gauge.high is not None else limit
        if alarm is None and agent.detected[0]:
            alarm = len(values) - 1

    for force in (10.0, -10.0):
        play(agent, force, 3, note)
        ends.append(len(values))
    with style():
        canvas = new_canvas(TWO_COLUMNS, HEIGHT)
        axes = canvas.subplots()
        axes.plot(values, color=BLUE, label="surprise")
        axes.axhline(limit, color=FAILED, linewidth=0.9, label="limit")
        axes.axvline(ends[0] - 0.5, color=GREY, linewidth=0.9)
        axes.annotate("the force is reversed", (ends[0] - 0.5, 0.9), (-4, 0), xycoords=axes.get_xaxis_transform(),
                      textcoords="offset points", ha="right")  # fmt: skip
        if alarm is not None:
            axes.plot(alarm, values[alarm], "o", color=FAILED, label=f"alarm in step {alarm + 1 - ends[0]} after it")
        axes.set(xlabel="step", ylabel="multiple of the limit", xlim=(ends[0] - 30, ends[1]))
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(0, 100)
        axes.legend(loc="center left")
    save(canvas, path, DPI)


def draw_contexts(path: Path) -> None:
    """Worlds that come and go; what was learned in one is used again."""
    agent, forces = calibrated(), [10.0] * 4 + [-10.0] * 8 + [10.0] * 6 + [-10.0] * 6
    returns, names = [], []
    for number, force in enumerate(forces):
        returns.append(play(agent, force, number))
        names.append(agent.names.of(int(agent.adaptation.contexts[0])))
    with style():
        canvas = new_canvas(TWO_COLUMNS, HEIGHT)
        axes = canvas.subplots()
        reversed_at = [number for number, force in enumerate(forces) if force < 0]
        axes.bar(reversed_at, 215, width=1, color="#eeeeee", label="the force is reversed", zorder=0)
        axes.plot(returns, color=GREY, linewidth=0.6)
        for name, colour in zip(dict.fromkeys(names), (BLUE, ORANGE, "#009e73", "#cc79a7"), strict=False):
            mine = [number for number, other in enumerate(names) if other == name]
            axes.plot(mine, np.array(returns)[mine], "o", color=colour, label=f"context: {name}")
        axes.set(xlabel="episode", ylabel="return", ylim=(0, 215))
        add_legend(canvas, [axes])
    save(canvas, path, DPI)


def draw_auto(path: Path) -> None:
    """Who plays after a change of the paper's kind."""
    options = {"protocol": "20+30", "trials": 1, "seed": 12}
    frozen, auto = (nappingrl.run("cartpole", "ppo", method, **options).rows for method in ("frozen", "auto"))
    with style():
        canvas = new_canvas(TWO_COLUMNS, HEIGHT)
        axes = canvas.subplots()
        for is_after in (False, True):
            part = frozen.filter((pl.col("episode") >= 0) == is_after)
            label = "frozen agent alone" if is_after else None
            axes.plot(part["episode"], part["return"], color=GREY, linewidth=0.8, label=label)
        names = auto["acted"].unique(maintain_order=True).to_list()
        colours = dict(zip(sorted(names), (BLUE, ORANGE, "#009e73", "#cc79a7"), strict=False))
        for name in names:
            part = auto.filter(pl.col("acted") == name)
            axes.plot(
                part["episode"], part["return"], "o", color=colours[name], label=f"auto: {name or 'the agent'} acts"
            )
        axes.axvline(-0.5, color="#444444", linewidth=0.9)
        axes.set(xlabel="episode after the change", ylabel="return", ylim=(0, 215))
        add_legend(canvas, [axes])
    save(canvas, path, DPI)


def draw_guard(path: Path) -> None:
    """The worst method there is, with and without a guard."""
    options = {"novelty": "gravity=12", "protocol": "10+40", "trials": 40, "seed": 4, "detector": "given"}
    runs = {
        "frozen": nappingrl.run("cartpole", "dqn", "frozen", **options),
        "random actions": nappingrl.run("cartpole", "dqn", "random", **options),
        "random actions, guarded": nappingrl.run("cartpole", "dqn", "random", guard=True, **options),
    }
    with style():
        canvas = new_canvas(TWO_COLUMNS, HEIGHT)
        axes = canvas.subplots()
        for (name, run), colour in zip(runs.items(), (GREY, FAILED, BLUE), strict=True):
            mean = run.rows.group_by("episode").agg(pl.col("return").mean()).sort("episode")
            axes.plot(mean["episode"], mean["return"], color=colour, label=name)
        axes.axvline(-0.5, color="#444444", linewidth=0.9)
        axes.set(xlabel="episode after the change", ylabel="mean return, 40 trials", ylim=(0, 215))
        add_legend(canvas, [axes])
    save(canvas, path, DPI)


def draw_foresight(path: Path) -> None:
    """What the fitted model predicts from one state, beside what happens."""
    agent = calibrated(method="foresight")
    for number in range(6):
        play(agent, -10.0, number)
    env = agent.wrap(make_world(-10.0))
    observation, _ = env.reset(seed=50)
    imagined, real = agent.method.imagine(0, observation.astype(np.float64), 60), [observation]
    while len(real) <= 60:
        observation, *_ = env.step(agent.predict(observation)[0])
        real.append(observation)
    with style():
        canvas = new_canvas(TWO_COLUMNS, HEIGHT)
        axes = canvas.subplots()
        axes.plot(np.degrees(np.array(real)[:, 2]), color=BLUE, label="what happens")
        if imagined is not None:
            steps = 1 + np.arange(len(imagined))  # the first prediction follows the first observation
            axes.plot(steps, np.degrees(imagined[:, 2]), color=ORANGE, linestyle="--", label="what the model predicts")
        axes.set(xlabel="step", ylabel="angle of the pole, degrees")
        axes.legend(loc="lower right")
    save(canvas, path, DPI)


PICTURES = {
    "detectors": draw_detectors, "contexts": draw_contexts, "auto": draw_auto, "guard": draw_guard,
    "foresight": draw_foresight,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=PICTURES, nargs="+", default=list(PICTURES))
    arguments = parser.parse_args()
    for name in arguments.only:
        PICTURES[name](arguments.folder / f"{name}.png")
        print(arguments.folder / f"{name}.png")


if __name__ == "__main__":
    main()
