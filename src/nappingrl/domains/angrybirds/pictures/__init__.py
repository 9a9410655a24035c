"""Screenshots drawn with Pillow."""
