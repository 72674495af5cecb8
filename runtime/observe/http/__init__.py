"""The small web server inside a server: a page, what is in it as JSON, measures, and a word on its health."""
