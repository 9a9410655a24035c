"""What the method imagines: the states that its model predicts, as outlines over the adapting pane."""

from typing import Any

from nappingrl.domains.canvas import Sketch
from nappingrl.play.pane import Pane

N_STEPS = 60
"""Steps that are looked ahead."""
POSE_EVERY = 10
"""Steps between two outlines."""


def imagined(pane: Pane) -> dict[str, Any]:
    """Outlines of the predicted states, the nearest first, and a sentence about them; both empty without a model."""
    path = pane.imagine(N_STEPS)
    if path is None or not len(path):
        return {"poses": [], "said": ""}
    ahead = f"its model of this world predicts {len(path)} step{'s' if len(path) > 1 else ''}"
    ahead += ", then the end" if len(path) < N_STEPS else ""
    poses = []
    for observation in path[POSE_EVERY - 1 :: POSE_EVERY] if len(path) >= POSE_EVERY else path[-1:]:
        sketch = Sketch()
        if not pane.domain.draw_predicted(0, observation, sketch):
            return {"poses": [], "said": f"Unseen: {ahead}; {pane.world.plain.title} cannot draw an observation."}
        poses.append(sketch.shapes)
    return {"poses": poses, "said": f"Faint outlines: {ahead}."}
