"""Who is let in, who may do what, and who did what: the parts of NORFAB that its specification leaves open."""
