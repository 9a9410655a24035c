"""From rows to pictures."""
