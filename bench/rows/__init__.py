"""What is timed: a file for each algorithm, whose table ``ROWS`` lists all of its rows."""
