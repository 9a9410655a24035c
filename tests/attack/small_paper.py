"""`napping paper`, made small: two trials of three methods with one agent. Run as a module in place of `nappingrl`."""

import sys
from dataclasses import replace

from nappingrl.cli import main
from nappingrl.registry import agents, methods
from nappingrl.reproduction import evaluation

if __name__ == "__main__":
    evaluation.PAPER = {name: replace(setup, quick=2) for name, setup in evaluation.PAPER.items()}
    evaluation.zoo_names = lambda domain: ["ppo"]
    for registry, names in ((methods, ("frozen", "napping", "random")), (agents, ())):
        for entry in registry.entries():
            registry._entries[entry.name] = replace(entry, in_paper=entry.name in names)
    main(sys.argv[1:])
