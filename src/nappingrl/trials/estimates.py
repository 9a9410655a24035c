"""How long a run takes, from `cost` and `usual_length` in the registry, which were measured before."""

from nappingrl.registry import agents, domains, methods
from nappingrl.trials.protocol import phases
from nappingrl.trials.spec import RunSpec


def episode_microseconds(spec: RunSpec) -> float | None:
    """CPU microseconds of a usual episode; None where the environment is not a domain."""
    if spec.domain not in domains:
        return None
    domain, method, name = domains.entry(spec.domain), methods.entry(spec.method), f"{spec.domain}-{spec.agent}"
    step = domain.cost + method.cost_in.get(spec.domain, method.cost)
    step += agents.entry(name).cost if name in agents else 0.0
    return step * (domain.usual_length or domain.horizon or int(domain.load().spec.horizon))


def expected_seconds(spec: RunSpec, workers: int = 1) -> float | None:
    """About how long a completed run takes; None: unknown."""
    cost = episode_microseconds(spec)
    n_episodes = spec.n_trials * sum(count for _, count in phases(spec.protocol))
    return None if cost is None else 1e-6 * cost * n_episodes / workers
