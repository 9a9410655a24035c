"""Do the paper's claims about the order of agents hold with other training seeds?

    napping train crossroad sb3-dqn --seed 1 --out seeds/1      (and every agent of AGENTS, and every seed)
    python benchmarks/training_seeds.py --agents seeds/1 seeds/2 seeds/3 seeds/4

Judges each claim once for each training seed: the agent of seed i is compared with the other agent of seed i. The
shipped agents take part with the seed on their cards. All runs meet the same draws; the same command continues a
stopped one. A domain takes part if one of its agents is in the folders.
"""

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from nappingrl.agents import card, load
from nappingrl.report.runs import Run, read_run
from nappingrl.reproduction.claims import CLAIMS
from nappingrl.reproduction.columns import COLUMNS, OURS, PRINTED, Column
from nappingrl.reproduction.evaluation import PAPER
from nappingrl.reproduction.judging import FAILS, HOLDS, UNDECIDED, Claim, Evidence, NotJudgedError, Part, verdict
from nappingrl.trials.runner import run_into

AGENTS = {
    "cartpole": {"zoo-ppo": "ppo", "zoo-dqn": "dqn"},
    "mountaincar": {"dqn": "dqn", "ppo-strong": "ppo-strong", "ppo-weak": "ppo-weak"},
    "crossroad": {"sb3-dqn": "sb3-dqn", "sb3-ppo": "sb3-ppo"},
    "angrybirds": {"dqn": "dqn", "dqn-rel": "dqn-rel"},
}
"""By domain: the agents that its claims name, and those that `napping train` makes in their place."""
ORDER = (
    "DQN-NAPPING adapts more slowly",
    "the frozen DQN is better than PPO-Strong before the novelty, and worse after it",
    "DQN-NAPPING converges to PPO-Strong's level",
    "PPO-Weak-NAPPING ends below both",
    "PPO is more robust when frozen",
    "PPO is faster",
    "DQN ends slightly higher",
    "DQN is better on New Speeds",
    "PPO is much better on Shift Speeds and Super Slow",
    "PPO is slightly better on All to the Right and Super Fast",
    "DQN-Rel is slightly ahead on Bird Likes Pig and Circumcircle",
    "DQN-Rel is slightly worse elsewhere",
)
"""The claims about the order of agents."""
FROZEN = Column("frozen", "frozen")
VERDICTS = (HOLDS, FAILS, UNDECIDED)
HEAD = ("claim", "column", "training seeds", *VERDICTS, "estimates, by seed")


def find_agents(domain: str, folders: Sequence[Path]) -> dict[int, dict[str, str]]:
    """By training seed and by the name that claims use: the shipped name or the path of the card."""
    found: dict[int, dict[str, str]] = {}
    for claimed, name in AGENTS[domain].items():
        for folder in (None, *(folder for folder in folders if (folder / f"{domain}-{name}.json").is_file())):
            seed = int(card(domain, name, folder)["seed"])
            by_name = found.setdefault(seed, {})
            if claimed in by_name:
                raise SystemExit(f"two agents {domain} {name} of seed {seed}: {by_name[claimed]} and {folder or name}")
            by_name[claimed] = name if folder is None else str(folder / f"{domain}-{name}.json")
    return found


def evaluate(domain: str, agent: str, column: Column, place: Path, args: argparse.Namespace) -> Run:
    """One run, or what is stored of it."""
    novelty = PAPER[domain].novelty
    one_each = column.spec(domain, agent, novelty, 1, args.seed)
    spec = column.spec(domain, agent, novelty, math.ceil(args.trials / one_each.n_trials), args.seed)
    run_into(place, spec, load(agent, domain), args.workers)
    return read_run(place)


def run_seed(domain: str, seed: int, agents: dict[str, str], args: argparse.Namespace) -> Evidence:
    """The agents of one training seed: frozen, with our defaults, and as printed, where that is another run."""
    runs: dict[tuple[str, str, str], Run] = {}
    for claimed, agent in agents.items():
        done: list[Run] = []
        for column in (FROZEN, COLUMNS[OURS], COLUMNS[PRINTED]):
            if not any(column.has(run.spec) for run in done):
                place = args.out / f"{domain}-{AGENTS[domain][claimed]}-{seed}-{column.folder}"
                done.append(evaluate(domain, agent, column, place, args))
            runs[domain, claimed, column.name] = next(run for run in done if column.has(run.spec))
    return Evidence(runs)


def judge_seeds(claim: Claim, column: str, evidence: dict[int, Evidence]) -> dict[int, Sequence[Part]]:
    """The parts of a claim by training seed; tells why it cannot be judged for others."""
    found, missing = {}, {}
    for seed, of_seed in evidence.items():
        try:
            found[seed] = claim.judge(of_seed.view(column))
        except NotJudgedError as why:
            missing.setdefault(str(why), []).append(str(seed))
    for why, seeds in missing.items():
        print(f"{claim.text}: not judged for seed {', '.join(seeds)}: {why}", file=sys.stderr)
    return found


def rows(claims: Sequence[Claim], evidence: dict[int, Evidence]) -> Iterator[tuple[str, ...]]:
    """The lines of the table."""
    for claim in claims:
        for column in (PRINTED, OURS) if claim.by_column else ("",):
            judged = judge_seeds(claim, column, evidence)
            verdicts = [verdict(parts) for parts in judged.values()]
            estimates = [
                f"{same[0].label}: {', '.join(f'{part.value:.{part.digits}f}' for part in same)}"
                for same in zip(*judged.values(), strict=True)
            ]
            yield (
                f"{claim.domain}: {claim.text}", column or "frozen", ", ".join(map(str, judged)) or "none",
                *(str(verdicts.count(one)) for one in VERDICTS), "; ".join(estimates),
            )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=Path, nargs="+", required=True, help="folders of agents, each of one seed")
    parser.add_argument("--domains", nargs="+", choices=AGENTS, default=list(AGENTS))
    parser.add_argument("--trials", type=int, default=300, help="of each run; several novelties share them")
    parser.add_argument("--seed", type=int, default=0, help="of the draws")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/training-seeds"))
    args = parser.parse_args()
    table = []
    for domain in args.domains:
        agents = find_agents(domain, args.agents)
        if len(agents) < 2:
            continue  # only the shipped ones
        evidence = {seed: run_seed(domain, seed, agents[seed], args) for seed in sorted(agents)}
        table += rows([claim for claim in CLAIMS if claim.domain == domain and claim.text in ORDER], evidence)
    if not table:
        parser.error(f"no agent of another seed in {', '.join(map(str, args.agents))}")
    for cells in (HEAD, ["---"] * len(HEAD), *table):
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
