"""A world's dynamics, fitted from the transitions that an agent has seen."""
