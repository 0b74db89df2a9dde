"""The nouns: frozen values that every other folder speaks in. Imports the standard library only."""
