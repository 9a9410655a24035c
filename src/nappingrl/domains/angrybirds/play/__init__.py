"""Play levels by mouse or by an agent, in a window or recorded."""
