"""What is timed: one file for each algorithm, whose function ``rows`` lists all of its rows."""
