"""Convex sets given by their support function: anchors, faces, projections."""
