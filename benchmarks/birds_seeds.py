"""Of trainings of one agent with several seeds, choose the median by its pass rate on held-out levels.

    napping train angrybirds dqn --seed 0 --out seed0       (and 1 and 2)
    python benchmarks/birds_seeds.py dqn seed0 seed1 seed2 --out zoo

The card of the chosen agent tells the pass rates of all. If its seed is not the recipe's, change the recipe as well.
"""

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

MEASURED = ("training levels", "held-out levels")


def choose(cards: list[dict[str, Any]]) -> dict[str, Any]:
    """The median card (of an even number the lower one), with the pass rates of all cards by seed."""
    ranked = sorted(cards, key=lambda card: (card["pass_rate"]["held-out levels"], card["seed"]))
    chosen = ranked[(len(ranked) - 1) // 2]
    seeds = [
        {"seed": card["seed"]} | {levels: card["pass_rate"][levels] for levels in MEASURED}
        for card in sorted(cards, key=lambda card: card["seed"])
    ]
    domain, name = chosen["domain"], chosen["name"]
    return chosen | {"seeds": seeds, "command": f"napping train {domain} {name}"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agent")
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True, help="folder for the chosen agent")
    args = parser.parse_args()
    stem = f"angrybirds-{args.agent}"
    folders = {card["seed"]: (folder, card) for folder in args.folders for card in [_read(folder / f"{stem}.json")]}
    chosen = choose([card for _, card in folders.values()])
    folder = folders[chosen["seed"]][0]
    args.out.mkdir(parents=True, exist_ok=True)
    if folder.resolve() != args.out.resolve():
        shutil.copy(folder / chosen["weights"], args.out)
    (args.out / f"{stem}.json").write_text(json.dumps(chosen, indent=2) + "\n")
    for seed in chosen["seeds"]:
        print(seed)
    print(f"shipped: seed {chosen['seed']}")


def _read(path: Path) -> dict[str, Any]:
    card: dict[str, Any] = json.loads(path.read_text())
    return card


if __name__ == "__main__":
    main()
