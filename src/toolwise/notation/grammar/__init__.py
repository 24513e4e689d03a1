"""Tools and schemas -> grammars that decoding can be held to: a name that exists, arguments that fit.

    schema     a JSON Schema in the words that can be masked, and what had to be left out
    keywords   which words these are; one_of: which choices exclude each other
    engine     what of it the masking engine takes, asked piece by piece
    grammar    the value that comes out, and Downgrade
    calls      a dialect's calls, and JSON for structured output
    inline     calls in running text

Everything here is text; `models.masks` turns a grammar into masks over a tokenizer.
"""

from toolwise.notation.grammar.calls import call_grammar, json_grammar
from toolwise.notation.grammar.grammar import Downgrade, Grammar

__all__ = ["Downgrade", "Grammar", "call_grammar", "json_grammar"]
