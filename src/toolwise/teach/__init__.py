"""Plain text -> C* -> a fine-tuned model."""
