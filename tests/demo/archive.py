#!/usr/bin/python3
"""A program that mail is delivered into: archive.py DIR NAME keeps its input."""
import os
import sys

directory, name = sys.argv[1:3]
with open(os.path.join(directory, f"{name}.{os.getpid()}"), "xb") as out:
    out.write(sys.stdin.buffer.read())
