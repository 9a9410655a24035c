"""Compile the kernels of a match before it begins, once on a machine, in a process whose memory is given back.

Compiling takes up to a minute and 200 MB, which a process never returns; loading what was compiled takes neither.
`python -m nappingrl.play.rehearsal DOMAIN AGENT METHOD`
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from threading import Thread

import numpy as np

from nappingrl._build import kernel_folder
from nappingrl.methods.auto import Auto
from nappingrl.play.match import YOU, Match, MatchSpec, is_slow, method_names, split_method
from nappingrl.registry import methods

N_BEFORE = 6
"""Episodes in the unchanged world: enough for every detector."""
N_STEPS = 800
"""Enough for an alarm, a plan, and episodes in the changed world."""
COMPILING = "Compiling the kernels of {method} for {domain}, once on this machine (about a minute): {seconds:.0f} s …"


def rehearse_once(spec: MatchSpec, tell: Callable[[str], None]) -> None:
    """Rehearse a match in a process of its own, unless that was done before on this machine.

    `tell` is told what takes so long, every second. Whatever goes wrong there goes wrong again in the match, which says
    why.
    """
    folder = kernel_folder()
    is_learning = spec.method != YOU and methods.get(split_method(spec.method)[0]).can_be_saved
    if folder is None or not is_learning or is_slow(spec.domain):
        return
    mark = folder / re.sub(r"[^\w.-]", "_", f"rehearsed-{spec.domain}-{spec.method}")
    if mark.exists():
        return
    words = [sys.executable, "-m", __name__, spec.domain, spec.agent, spec.method]
    silent, begin = subprocess.DEVNULL, time.monotonic()
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=silent, stderr=silent) as process:
        while process.poll() is None:
            tell(COMPILING.format(method=spec.method, domain=spec.domain, seconds=time.monotonic() - begin))
            with suppress(subprocess.TimeoutExpired):
                process.wait(1.0)
    mark.touch()


def rehearse(spec: MatchSpec) -> None:
    """Play a match in a world that changes, with everything that may act in it."""
    match = Match(spec)
    _play_changed(match)
    method, offered = match.adapting.adaptation.method, method_names(match.world, match.agent)
    for name in method.candidates if isinstance(method, Auto) else ():
        if name in offered:  # in the match, it may act only after others have failed
            _play_changed(Match(replace(spec, method=name), match.world, match.agent))


def _play_changed(match: Match) -> None:
    switches = match.world.switches
    match.change_world(switches[0].values if switches else match.world.draw("", np.random.default_rng(0)))
    for _ in range(N_STEPS):
        match.step()


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    Thread(target=_end_with_parent, daemon=True).start()
    domain, agent, method = sys.argv[1:]
    rehearse(MatchSpec(domain, agent, method, n_before=N_BEFORE))
