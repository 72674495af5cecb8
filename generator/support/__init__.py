"""Packages that specwire wrote, one for each protocol, and what they share."""
