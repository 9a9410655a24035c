"""One file = one world, with its novelties, scores and detector."""
