"""The templates of a page, and the files that it contains."""

from functools import cache
from importlib.resources import files
from typing import Any

from nappingrl.errors import MissingExtraError

PACKAGE = "nappingrl.report.page"


def render(template: str, **values: Any) -> str:
    """A template filled in; every text among the values is escaped."""
    return str(_environment().get_template(template).render(**values))


def resource(name: str) -> str:
    """A file of this package, its line ends those of HTML."""
    return files(PACKAGE).joinpath(name).read_text(encoding="utf-8").replace("\r\n", "\n")


@cache
def _environment() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise MissingExtraError('the page needs jinja2: pip install "nappingrl[report]"') from error
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: resource(f"templates/{name}")), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
