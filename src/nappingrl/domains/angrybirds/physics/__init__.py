"""The physics of Angry Birds on Box2D: levels, constants, bodies, shots, rules and the world."""
