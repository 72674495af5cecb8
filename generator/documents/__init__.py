"""Import of published documents: find the grammar, write ``grammar.abnf`` and ``profile.toml``.

    document --cut--> blocks --join, convert--> grammar.abnf
        └--headings, front matter, lists--> title, edition, source --> profile.toml

`specwire.generator.documents.importing` is the whole import; the other modules are its steps.
"""
