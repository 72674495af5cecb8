"""A published document to a protocol's folder: find the grammar, write ``grammar.abnf`` and ``profile.toml``.

    document --cut--> blocks --join, convert--> grammar.abnf
        └--headings, front matter, lists--> title, edition, source --> profile.toml

`specwire.generator.documents.importing` holds the whole way; the other modules are its steps.
"""
