"""The standing attack: every module with `attack(budget, seed)` is one kind of attack; `make attack` runs them all."""
