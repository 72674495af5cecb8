"""What is particular to each protocol, a module each, named as its generated package."""
