# Each target does its own set-up and can be run again. PYTHON names the interpreter (3.11 or newer).
export PYTHON

.PHONY: help demo test clean

help:
	@echo "make demo    teach SmolLM2-135M to call tools on a small corpus, then let it answer with them"
	@echo "make test    format, lint, types, tests, and the examples in the documentation"
	@echo "make clean   remove .venv, caches and the demo's run; pulled models stay in the user's cache"

demo:
	scripts/setup
	.venv/bin/toolwise demo

test:
	scripts/setup
	.venv/bin/toolwise pull smollm2-135m
	scripts/check

clean:
	rm -rf .venv build dist demo-run .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
