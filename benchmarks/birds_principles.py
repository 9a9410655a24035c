"""What each novelty of Angry Birds changes, what the frozen agent does about it, and what NAPPING learns, as a table.

    python benchmarks/birds_principles.py [--agent dqn] [--rule text] [--episodes 40]
    python benchmarks/birds_principles.py --rule text --novelty taller-slingshot --gif OUT.gif

The animation shows two levels of different kinds, each twice: the frozen agent's shot, which fails, and the shot that
NAPPING has learned instead.
"""

import argparse
from collections import Counter
from pathlib import Path

import gymnasium
from PIL import Image

from nappingrl import NappingAgent
from nappingrl.domains.angrybirds.acceptance.measuring import variant_of
from nappingrl.domains.angrybirds.acceptance.playing import Playground
from nappingrl.domains.angrybirds.aiming import Targets, release_point
from nappingrl.domains.angrybirds.domain import AngryBirds
from nappingrl.domains.angrybirds.ground_truth.state import ground_truth
from nappingrl.domains.angrybirds.levels.templates import TEMPLATES, make_level
from nappingrl.domains.angrybirds.novelties import PAPER_NOVELTIES, make_change
from nappingrl.domains.angrybirds.physics.world import World
from nappingrl.domains.angrybirds.pictures.picture import draw
from nappingrl.domains.angrybirds.words import name_shot

FRAME_TICKS, MAX_FRAMES = 5, 55
ROWS = slice(110, 320)
LEVELS = range(350)
"""Numbers of the levels among which those to show are searched."""


def play(env, agent, params, seed):
    """One level: passed or not, and the actions."""
    observation, info = env.reset(seed=seed, options={"params": params})
    actions, ended = [], False
    while not ended:
        action, _ = agent.predict(observation)
        actions.append(name_shot(observation, int(action)))
        observation, _, terminated, truncated, info = env.step(action)
        ended = terminated or truncated
    return info["status"] == "won", actions


def trial(model, method, params, episodes, **options):
    agent = NappingAgent(model, domain="angrybirds", method=method, detector="given", **options)
    env = agent.wrap(gymnasium.make("nappingrl/AngryBirds-v0", reward="win"))
    played = [play(env, agent, params, seed) for seed in range(episodes)]
    return agent, [won for won, _ in played], Counter(actions[0] for _, actions in played)


def learned_levels(name, frozen, agent):
    """Two levels of different kinds that only the adapted agent's first shot passes, by different replacements."""
    found = {}
    for number in LEVELS:
        playground = Playground(make_level(name, number), name)
        observation = playground.start.observation
        actions = tuple(int(one.predict(observation)[0]) for one in (frozen, agent))
        shots = [playground.start.shot(action) for action in actions]
        passed = [shot is not None and playground.after((shot,)).status == "won" for shot in shots]
        kind = variant_of(name, number)
        if passed == [False, True] and kind not in found and actions not in [two for _, two in found.values()]:
            found[kind] = number, actions
            print(f"{kind}: {' -> '.join(name_shot(observation, action) for action in actions)}")
        if len(found) == 2:
            break
    return list(found.values())


def film(world, action, frames):
    """One shot of a world, as small pictures."""
    targets = Targets()
    scene = world.scene()
    targets.update(ground_truth(scene))
    shot = targets.aim(action)
    flight = []

    def look():
        if world.ticks % FRAME_TICKS == 0 and len(flight) < MAX_FRAMES:
            flight.append(draw(world.scene())[ROWS])

    world.shoot(release_point(shot, scene), shot.tap_ms if shot else 0, look)
    frames += [draw(scene)[ROWS]] * 8 + flight + [draw(world.scene())[ROWS]] * 12


def animate(name, frozen, agent, path):
    """Two levels, each with the frozen agent's shot and with the one that NAPPING has learned instead."""
    frames = []
    for number, actions in learned_levels(name, frozen, agent):
        for action in actions:
            film(World(make_level(name, number), change=make_change({name: 1.0})), action, frames)
    if not frames:
        print(f"no level of {name} that only the adapted agent passes; no animation")
        return
    pictures = [Image.fromarray(frame).quantize(64) for frame in frames]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=20 * FRAME_TICKS, loop=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", default="dqn")
    parser.add_argument("--rule", default="printed", help="of NAPPING's update")
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--novelty", default="", help="only this one")
    parser.add_argument("--gif", type=Path)
    args = parser.parse_args()
    print("| novelty | what changed | frozen: passed, most frequent shot | NAPPING: last 10 passed | its principles |")
    print("|---|---|---|---|---|")
    for name in [args.novelty] if args.novelty else PAPER_NOVELTIES:
        params = {"template": 1.0 + list(TEMPLATES).index(name), name.replace("-", "_"): 1.0}
        frozen_agent, frozen, shots = trial(args.agent, "frozen", params, args.episodes)
        agent, won, _ = trial(args.agent, "napping", params, args.episodes, rule=args.rule)
        rules = "; ".join(str(rule) for rule in agent.explain()[:3])
        changed = AngryBirds.spec.novelties[name].description
        print(
            f"| {name} | {changed} | {sum(frozen)} of {len(frozen)}, {shots.most_common(1)[0][0]} "
            f"| {sum(won[-10:])} | {rules} |",
            flush=True,
        )
        if args.gif is not None:
            animate(name, frozen_agent, agent, args.gif)


if __name__ == "__main__":
    main()
