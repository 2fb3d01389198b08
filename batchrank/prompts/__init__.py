"""From a query and its documents to the text of a prompt: neutralise, truncate, render."""
