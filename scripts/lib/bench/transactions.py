#!/usr/bin/env python3
"""transactions.py FILE COUNT: makes an SQLite database and commits rows, each in a transaction of its own. Prints the
nanoseconds of each, elapsed and of the processor, as benchprobe does."""
import sqlite3
import sys
import time

path, count = sys.argv[1], int(sys.argv[2])
database = sqlite3.connect(path, isolation_level=None)
database.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, text TEXT)")
start, processor = time.monotonic_ns(), time.process_time_ns()
for number in range(count):
    database.execute("INSERT INTO rows VALUES (?, ?)", (number, "x" * 200))
print((time.monotonic_ns() - start) / count, (time.process_time_ns() - processor) / count)
database.close()
