"""The servers that can be shown, each with its status document, its measures and its page."""
