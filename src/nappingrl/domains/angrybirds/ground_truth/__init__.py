"""The ground truth: the objects of a scene as the original game reports them, in JSON, and its reader."""
