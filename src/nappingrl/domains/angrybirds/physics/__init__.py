"""The physics of Angry Birds on Box2D."""
