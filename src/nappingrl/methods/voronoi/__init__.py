"""Sites and their Voronoi regions: storage, and exact nearest-site search."""
