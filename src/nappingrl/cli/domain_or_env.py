"""DOMAIN or --env: the two ways to say where an agent acts."""

from nappingrl.errors import BadSpecError


def domain_or_env(domain: str, env: str, default: str = "") -> str:
    """The domain's name or the environment's id: exactly one of them, or none where there is a default."""
    given = f"both DOMAIN ({domain}) and --env ({env}) are" if domain and env else "no domain is"
    if (domain and env) or not (domain or env or default):
        raise BadSpecError(
            f"{given} given; allowed: a DOMAIN of `napping list`, or --env with the id of a gymnasium environment"
        )
    return domain or env or default
