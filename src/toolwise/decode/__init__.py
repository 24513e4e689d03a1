"""Answers: the model writes, the gate runs, the model goes on."""
