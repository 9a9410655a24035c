"""Every domain with every method: time and memory of a step, beside the loop of a user and the bare forward pass.

Each case runs in a new process, so that its memory is known. Times are CPU times on one core.
"""

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from nappingrl.agents import load
from nappingrl.agents.mlp import MlpAgent
from nappingrl.benchmark.engine import time_matrix_products
from nappingrl.benchmark.user_loop import time_predict_loop
from nappingrl.domains import find_domain
from nappingrl.errors import BadAgentError, BadSpecError, MissingExtraError
from nappingrl.registry import domains, methods
from nappingrl.trials.engine import Engine
from nappingrl.trials.estimates import expected_seconds
from nappingrl.trials.spec import RunSpec
from nappingrl.types import OnProgress

Result = TypeVar("Result")
_SECONDS, _MIN_TRIALS, _MAX_TRIALS = 5.0, 4, 128
"""How long a case is to take, and the trials of any."""
PER_MB = 1024 if sys.platform != "darwin" else 1024**2
"""Units of `ru_maxrss` in a megabyte."""


@dataclass(frozen=True, slots=True)
class Case:
    """What was measured; only `domain`, `agent` and `method` where the method refuses the agent."""

    domain: str
    agent: str
    method: str
    refused: str = ""
    """Why the method does not run."""
    step_us: float | None = None
    steps_per_second: float | None = None
    times_loop: float | None = None
    """How many times as fast as `predict` and `env.step`, one observation at a time, without any method."""
    times_forward: float | None = None
    """How many times as long as the matrix products of the network; None: it is no perceptron."""
    memory_mb: float | None = None
    """The most that the process had in memory; None: the system does not tell (Windows)."""
    is_compiled: bool = False
    """Whether whole episodes are played in a kernel."""


def measure_overview(
    domain_names: Sequence[str] = (), method_names: Sequence[str] = (), on_progress: OnProgress | None = None
) -> list[Case]:
    """One case for each domain (with its default agent) and method; none given: all that are registered."""
    names = [(domain, method) for domain in domain_names or domains for method in method_names or methods]
    cases: list[Case] = []
    loops: dict[str, float | None] = {}
    for i, (domain, method) in enumerate(names):
        if on_progress is not None:
            on_progress(i, len(names))
        if domain not in loops:
            loops[domain] = in_process(_time_loop, domain)
        cases.append(in_process(_measure, domain, method, loops[domain]))
    return cases


def in_process(work: Callable[..., Result], *arguments: Any) -> Result:
    """The result of work in a new process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def _time_loop(domain: str) -> float | None:
    """Microseconds per step of a user's loop; None where it cannot be written: no SB3, or no agent of SB3's."""
    try:
        with threadpool_limits(1):
            return time_predict_loop(domains.entry(domain).env_id, load(find_domain(domain).defaults.agent, domain))
    except (MissingExtraError, BadAgentError):
        return None


def _measure(domain: str, method: str, loop_us: float | None) -> Case:
    agent_name = find_domain(domain).defaults.agent
    try:
        spec = RunSpec(domain, agent_name, method, trials=1, seed=1, detector="given").complete()
        seconds = expected_seconds(spec) or _SECONDS
        spec = replace(spec, trials=min(max(_MIN_TRIALS, round(_SECONDS / seconds)), _MAX_TRIALS))
        agent = load(agent_name, domain)
        with threadpool_limits(1):
            Engine(spec, agent).run_trials(spec.trial_specs(0, 1))  # compiles the kernels
            engine = Engine(spec, agent)
            started = time.process_time()
            rows = engine.run_trials(spec.trial_specs())
            step_us = (time.process_time() - started) / int(rows["length"].sum()) * 1e6
            forward_us = time_matrix_products(agent) if isinstance(agent, MlpAgent) else None
    except (BadAgentError, BadSpecError) as error:
        return Case(domain, agent_name, method, refused=str(error))
    return Case(
        domain, agent_name, method, "", step_us, 1e6 / step_us, None if loop_us is None else loop_us / step_us,
        None if forward_us is None else step_us / forward_us, peak_memory_mb(), engine.is_compiled,
    )  # fmt: skip


def peak_memory_mb() -> float | None:
    """The most that this process had in memory so far; None where the system does not tell."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / PER_MB
