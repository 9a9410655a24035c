"""Config records as options of methods: every tuning constant can be set by `--option NAME=VALUE`."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from typing_extensions import override

from nappingrl.errors import BadSpecError
from nappingrl.options import Option
from nappingrl.world_model.config import MAX_REAL, ModelConfig

Config = TypeVar("Config", bound=ModelConfig)


class NumbersOption(Option):
    """An option whose value is a list of numbers, separated by commas."""

    @override
    def read(self, name: str, value: Any) -> str:
        try:
            return _join(_split(str(value)))
        except ValueError:
            raise BadSpecError(f"option {name}={value!s:.60} is not a list of numbers such as {self.default}") from None


def _split(text: str) -> tuple[float, ...]:
    numbers = tuple(float(word) for word in text.split(","))
    if not all(abs(number) <= MAX_REAL for number in numbers):
        raise ValueError(f"a number beyond {MAX_REAL:g}")
    return numbers


def _join(numbers: tuple[float, ...]) -> str:
    return ",".join(f"{number:g}" for number in numbers)


def settings_as_options(config: type[Config]) -> dict[str, Option]:
    """The fields of a config record as options of a method."""
    options: dict[str, Option] = {}
    for field in fields(config):
        default: Any = field.default
        description = field.metadata["description"]
        if isinstance(default, tuple):
            options[field.name] = NumbersOption(_join(default), description)
        else:
            low, high = field.metadata["low"], field.metadata["high"]
            options[field.name] = Option(default, description, low=low, high=high, is_whole=isinstance(default, int))
    return options


def read_settings(config: type[Config], options: Mapping[str, Any]) -> Config:
    """The config with the values of these options in place of the defaults."""
    defaults: dict[str, Any] = {field.name: field.default for field in fields(config)}
    values: dict[str, Any] = {}
    for name, value in options.items():
        default = defaults[name]
        values[name] = _split(value) if isinstance(default, tuple) else type(default)(value)
    return config(**values)
