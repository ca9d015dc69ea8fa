#!/usr/bin/env python3
"""Compares what the stand-in answers with what a GPU's driver answered.

usage: conformance.py PROBE LIBCUDA DATA

DATA/h200.txt is the record of a GPU (probe.c says how it is made). DATA/differences.txt names the lines that may differ,
each with its reason: "= line" is a line of the record that the stand-in answers otherwise, and the "+ line" below it is
what it answers instead. A difference that is not listed, and a listed one that has gone, both fail.
"""
import collections
import difflib
import subprocess
import sys

SECTIONS = "calls clusters context device errors faults function graph launch linking tensormap".split()


def main():
    probe, library, data = sys.argv[1:4]
    run = subprocess.run([probe, library] + SECTIONS, capture_output=True, text=True, timeout=280)
    ours = run.stdout.splitlines()
    theirs = open(data + "/h200.txt").read().splitlines()
    allowed = [line.rstrip("\n") for line in open(data + "/differences.txt") if line[:2] in ("= ", "+ ")]
    expected = collections.Counter(line.replace("= ", "- ", 1) for line in allowed)

    found = collections.Counter()
    for line in difflib.ndiff(theirs, ours):
        if line[:2] in ("- ", "+ "):
            found[line] += 1
    for line in sorted((found - expected).elements(), key=lambda text: text[2:]):
        print("not expected:", line)
    for line in sorted((expected - found).elements(), key=lambda text: text[2:]):
        print("listed in differences.txt, but not so any more:", line)
    print(len(ours), "answers,", sum(found.values()), "lines differ")
    if run.returncode != 0:
        print("the probe ended with status", run.returncode, run.stderr)
    return int(found != expected or run.returncode != 0)


sys.exit(main())
