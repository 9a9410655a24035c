"""A match to take away: as a command, as Python code, and as the query of a link."""

import shlex
from urllib.parse import urlencode

from nappingrl.domains.from_env import DrawnGymnasiumDomain
from nappingrl.play.match import YOU, Match, split_method

N_AFTER = 10
"""Episodes after the change that the copies run."""


def as_command(match: Match) -> str:
    """The command whose first trial gives the episodes of this match, begun again in the world of now."""
    options = _options(match)
    domain = ["--env", match.spec.domain] if _is_env(match) else [match.spec.domain]
    words = ["napping", "run", *domain]
    for name, value in options.items():
        words += [f"--{name}={value}"] if str(value).startswith("-") else [f"--{name}", str(value)]
    return shlex.join(words)


def as_film(match: Match) -> str:
    """The command that films this change of the world."""
    options = _options(match)
    domain = ["--env", match.spec.domain] if _is_env(match) else [match.spec.domain]
    kept = {**options, "method": options["method"] if match.spec.method == YOU else match.spec.method}
    kept = {name: kept[name] for name in ("agent", "method", "novelty", "seed")}
    words = [f"--{name}={value}" for name, value in kept.items() if value != "none"]
    return shlex.join(["napping", "record", *domain, *words, "--out", "match.gif"])


def as_python(match: Match) -> str:
    """The same in Python."""
    options = _options(match)
    agent, method, rule = options.pop("agent"), options.pop("method"), options.pop("rule", "")
    own = f", options={{'rule': {rule!r}}}" if rule else ""
    given = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return "\n".join(
        [
            "import nappingrl",
            "",
            f"frozen = nappingrl.run({match.spec.domain!r}, {agent!r}, 'frozen', {given})",
            f"adapted = nappingrl.run({match.spec.domain!r}, {agent!r}, {method!r}, {given}{own})",
            "print(frozen.rows['return'].to_list(), adapted.rows['return'].to_list(), sep='\\n')",
        ]
    )


def as_query(match: Match, own_name: str = "") -> str:
    """The query of a link that restores domain, agent, method, seed and parameters; without token and paths."""
    spec = match.spec
    agent = own_name or match.world.agent
    values = {"domain": spec.domain, "agent": agent, "method": spec.method, "seed": spec.seed}
    return urlencode(values | {f"p.{name}": f"{value:.12g}" for name, value in match.changes.items()})


def _options(match: Match) -> dict[str, str | int]:
    spec, (method, rule) = match.spec, split_method(match.spec.method)
    return {
        "agent": match.world.agent,
        "method": "frozen" if spec.method == YOU else method,
        **rule,
        "novelty": match.world.text(match.changes),
        "protocol": f"{spec.n_before}+{N_AFTER}",
        "trials": 1,
        "seed": spec.seed,
    }


def _is_env(match: Match) -> bool:
    return match.world.plain.simulator is DrawnGymnasiumDomain
