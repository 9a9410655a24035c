"""The methods that compete in `auto`; any registered method may be one."""

from dataclasses import replace
from typing import Any

from typing_extensions import override

from nappingrl.agents.base import Agent
from nappingrl.errors import BadAgentError, BadSpecError, check_name
from nappingrl.methods.base import Method, MethodInfo
from nappingrl.options import Option
from nappingrl.registry import methods
from nappingrl.score import reward_score

CANDIDATES = ("reground", "facts", "recall", "foresight", "napping-ucb")
"""In the order in which they are tried."""


class CandidatesOption(Option):
    """An option whose value is a list of methods."""

    @override
    def read(self, name: str, value: Any) -> str:
        names = [word.strip() for word in str(value).split(",") if word.strip()]
        for candidate in names:
            check_name("candidate", candidate, allowed_candidates())
        if len(set(names)) < len(names):
            raise BadSpecError(f"option {name}={value!s:.60} names a candidate twice")
        return ",".join(names)


def allowed_candidates() -> list[str]:
    """Methods that may compete: those that adapt, can be saved, and take no other methods."""
    return [
        name
        for name in methods.names()
        if methods.get(name).can_be_saved and not methods.get(name).is_privileged and name not in ("auto", "frozen")
    ]


def make_candidates(names: str, agent: Agent, info: MethodInfo, n: int) -> tuple[dict[str, Method], dict[str, str]]:
    """The candidates that can work with this agent and domain by name, and why the others cannot."""
    made: dict[str, Method] = {}
    refused: dict[str, str] = {}
    for name in names.split(",") if names else ():
        method_class: type[Method] = methods.get(name)
        score = reward_score() if method_class.takes_score else None
        try:
            shared = {key: value for key, value in info.options.items() if key in method_class.options}
            made[name] = method_class(agent, replace(info, score=score, options=shared, oracle=None), n)
            made[name].name = name
        except (BadAgentError, BadSpecError) as error:  # such as continuous actions
            refused[name] = str(error)
    return made, refused
