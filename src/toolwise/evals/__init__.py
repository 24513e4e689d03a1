"""Measuring: one file a task family."""
