"""From files, standard input and stores of logs to a book: what opens, unpacks and spreads the work; what lines mean is said in formats."""
