"""What the Markdown pages show: shell commands, blocks of Python and TOML, read by a Markdown parser."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from nappingrl.cli.argv import COMMANDS

ROOT = Path(__file__).parents[2]
FRONT = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md")
PAGES = [*(ROOT / name for name in FRONT), *sorted((ROOT / "docs").rglob("*.md"))]
COMMAND = re.compile(r"(?:\$ )?((?:napping|make) .+|python (?:benchmarks|tests)/.+)")
MENTION = re.compile(
    rf"\bnapping (?:{'|'.join({name.split()[0] for name in COMMANDS})})\b"
    r"|\bmake (?:demo|play|test|test-all|bench|lint|docs|clean)\b"
    r"|\bpython (?:benchmarks|tests)/\w+"
)
"""A command anywhere in the text of a page, whether the parser finds it or not."""
FILE = re.compile(r"# ([\w/]+\.py)\n")
"""How a block of Python begins that the reader saves as a file."""


@dataclass(frozen=True)
class Shown:
    """A command or a block of code on a page."""

    page: Path
    line: int
    text: str
    language: str = "sh"
    is_inline: bool = False

    @property
    def is_python(self) -> bool:
        return self.language == "python"

    @property
    def is_command(self) -> bool:
        return self.language == "sh"

    @property
    def file(self) -> str:
        """The file that the block is saved as; empty: none."""
        match = FILE.match(self.text)
        return match[1] if self.is_python and match else ""

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text, comments=True)

    @property
    def is_mention(self) -> bool:
        """Whether a sentence only names a command."""
        return self.is_inline and " ".join(self.words[1:]) in {*COMMANDS, "birds"}

    @property
    def is_pattern(self) -> bool:
        """Whether words in capitals stand for what the reader fills in."""
        return any("|" in word or re.search(r"(^|[-/])[A-Z]+($|[-/.])", word) for word in self.words)


def read_page(page: Path) -> list[Shown]:
    """Commands and blocks of code in the order of the page."""
    shown: list[Shown] = []
    for token in parse_page(page):
        line = token.map[0] + 1 if token.map else 0
        language = (token.info.split() or [""])[0]
        if token.type == "fence" and language in ("python", "toml"):
            shown.append(Shown(page, line, token.content, language))
        elif token.type in ("fence", "code_block"):
            lines = token.content.replace("\\\n", " ").splitlines()
            shown += [Shown(page, line, match[1]) for text in lines if (match := COMMAND.fullmatch(text.strip()))]
        for child in token.children or []:
            if child.type == "code_inline" and (match := COMMAND.fullmatch(child.content)):
                shown.append(Shown(page, line, match[1], is_inline=True))
    return shown


def parse_page(page: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()
