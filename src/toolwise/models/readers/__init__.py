"""Who answers a question out of passages, for the tool `QA`; one file each.

    lm           a language model behind our protocol, by default the run's own: the likeliest words of the passages
    extractive   a question-answering network of transformers, by name or folder
    upstream     a model behind an OpenAI-compatible server, by URL

`tools.qa.Reader` says what a reader is.
"""
