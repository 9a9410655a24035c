"""What acts and embeds."""
