"""AI-TOD: the oLRP of its evaluation."""
