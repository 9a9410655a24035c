"""Names of contexts: "as trained", "novelty 1", or what the user calls them."""

from collections.abc import Iterable

from nappingrl.errors import BadSpecError, check_name

AS_TRAINED = "as trained"
"""The name of the context before the novelty."""


class ContextNames:
    """The names of an agent's contexts; a context without one is called by its number."""

    def __init__(self, names: Iterable[tuple[int, str]] = ((0, AS_TRAINED),)) -> None:
        self._names = dict(names)

    def of(self, context: int) -> str:
        """The name of a context."""
        return self._names.get(context, f"novelty {context}")

    def by_name(self, known: set[int]) -> dict[str, int]:
        """These contexts by name; the names of others are forgotten."""
        self._names = {context: name for context, name in self._names.items() if context in known}
        return {self.of(context): context for context in known}

    def rename(self, old: str, new: str, known: set[int]) -> None:
        """Give a known context another name."""
        by_name = self.by_name(known)
        if new in by_name:
            raise BadSpecError(f"a context is called '{new}' already; choose another name")
        self._names[by_name[check_name("context", old, by_name)]] = new

    def find(self, name: str, known: set[int]) -> int:
        """The context of that name; a new name is given to a new context."""
        by_name = self.by_name(known)
        context = by_name.get(name, max(by_name.values()) + 1)
        self._names[context] = name
        return context

    def items(self) -> list[tuple[int, str]]:
        """Contexts with their names."""
        return list(self._names.items())
