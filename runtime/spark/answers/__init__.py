"""What typed tables tell: conversations, requests, health, who talks to whom."""
