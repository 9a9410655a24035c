"""How many trials a worker takes at a time: from a table by domain and method, never from a timing.

Parts of a run then do not depend on the machine. A chunk is long enough that starting it costs little, and short enough
that the hundred trials of a costly method keep several workers busy. Rows do not depend on it.
"""

from nappingrl.errors import BadSpecError
from nappingrl.registry import domains, methods
from nappingrl.trials.estimates import episode_microseconds
from nappingrl.trials.limits import MAX_PARTS
from nappingrl.trials.spec import RunSpec

CHUNK = 128
"""Of cheap methods in compiled domains."""
IN_ENV = 16
"""In an environment that is no domain: Python steps it, so that a chunk of more trials would take an hour."""
IN_DOMAIN = {"angrybirds": 8}
"""In a domain whose steps take milliseconds."""
COSTLY, OF_COSTLY = 15.0, 32
"""Methods from this cost on (CPU microseconds per step, as the registry lists it) have chunks of this size..."""
MANY = 8 * CHUNK
"""... in runs with fewer trials than this; in longer ones, several workers are busy anyway."""
FEW, OF_FEW, LONG = 64, 6, 3000.0
"""Runs with fewer trials than this have chunks of this size, where an episode takes this long (CPU microseconds): in a
single chunk, one worker would do all."""


def chunk_size(spec: RunSpec) -> int:
    """Trials per part of a run."""
    if spec.domain not in domains:
        return IN_ENV
    if spec.domain in IN_DOMAIN:
        return IN_DOMAIN[spec.domain]
    method = methods.entry(spec.method)
    cost = method.cost_in.get(spec.domain, method.cost)
    if spec.n_trials < FEW and (episode_microseconds(spec) or 0.0) >= LONG:
        return OF_FEW
    return OF_COSTLY if cost >= COSTLY and spec.n_trials < MANY else CHUNK


def n_chunks(spec: RunSpec) -> int:
    """Parts of a run; raise if they are too many."""
    n = -(-spec.n_trials // chunk_size(spec))
    if n > MAX_PARTS:
        raise BadSpecError(
            f"{spec.n_trials} trials would be {n} parts; at most {MAX_PARTS} are stored; run fewer trials"
        )
    return n
