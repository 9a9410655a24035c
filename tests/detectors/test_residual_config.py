"""The settings of the residual detector are documented in one table."""

from dataclasses import fields
from pathlib import Path

from nappingrl.detectors.residual import ResidualConfig

ROOT = Path(__file__).parents[2]


def table_of_settings() -> str:
    """The table in docs/detectors.md."""
    rows = [
        f"| `{field.name}` | {field.default} | {field.metadata['description']} |" for field in fields(ResidualConfig)
    ]
    return "\n".join(["| field | default | meaning |", "|---|---|---|", *rows])


def test_the_docs_list_every_setting() -> None:
    page = (ROOT / "docs/detectors.md").read_text(encoding="utf-8")
    assert table_of_settings() in page, "paste what table_of_settings() returns"
