"""Answers computed from typed tables: conversations, requests, health, and peers."""
