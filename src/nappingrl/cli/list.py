"""`napping list`."""

import json
from dataclasses import dataclass

from tyro.conf import Positional

from nappingrl.cli.catalogue import KINDS, describe_all, describe_one, list_kind, names_by_kind
from nappingrl.cli.console import print_entries
from nappingrl.errors import check_name

OVERVIEW = ("domains", "methods", "detectors")
MORE = """One domain or method with all it has:   napping list cartpole
Everything of a kind:                   napping list detectors
  {kinds}
Any gymnasium environment:              napping run --env ID --agent PATH.zip"""


@dataclass(frozen=True)
class List:
    """List domains, agents, methods, detectors and what else can be named.

    Without an argument: domains, methods and detectors, one line each. What an installed package registers is marked
    with the name of that package.

    Example: napping list
    Example: napping list detectors
    Example: napping list cartpole
    """

    what: Positional[str] = ""
    """A kind, such as domains, agents, methods, novelties, detectors, scores, rules, spaces, terms or wrappers, or the
    name of one thing, such as cartpole or foresight."""
    json: bool = False
    """Print a single machine-readable object with everything."""

    def __call__(self) -> None:
        """Print the tables."""
        if self.json:
            found = describe_all()
            print(json.dumps(found if not self.what else found[check_name("kind", self.what, found)]))
            return
        for kind in OVERVIEW if not self.what else (self.what,) if self.what in KINDS else ():
            print_entries(f"{kind}: {KINDS[kind]}", list_kind(kind))
        if not self.what:
            print(MORE.format(kinds=" ".join(KINDS)))
        elif self.what not in KINDS:
            names = {name for named in names_by_kind().values() for name in named}
            check_name("name", self.what, [*KINDS, *names])
            for title, entries in describe_one(self.what):
                print_entries(title, entries)
