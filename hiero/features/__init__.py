"""Names, weights and templates of features; scores of rules."""
