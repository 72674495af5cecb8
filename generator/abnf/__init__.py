"""Reader of ABNF: from the text of a grammar to its syntax tree, and matchers of rules that describe text."""
