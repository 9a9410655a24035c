"""Pictures of scenes, drawn with Pillow: screenshots and contact sheets."""
