"""One-step dynamics, fitted from transitions."""
