#!/usr/bin/env python3
"""Compares what the stand-in answers with what a GPU's driver answered.

usage: conformance.py PROBE LIBCUDA DATA [NAME]

DATA/h200.txt is the record of a GPU (probe.c says how it is made); with a NAME it is h200_NAME.txt, of all that the probe asks.
DATA/differences.txt (differences_NAME.txt) names the lines that may differ, each with its reason: "= line" is a line of the record that the stand-in answers otherwise, and the "+ line" below it is
what it answers instead; "~ pattern" names lines that are not compared. A difference that is not listed, and a listed one that has gone, both fail.
"""
import collections
import difflib
import re
import subprocess
import sys

SECTIONS = "calls clusters context device errors faults function graph launch linking tensormap".split()


def main():
    probe, library, data = sys.argv[1:4]
    name = "_" + sys.argv[4] if len(sys.argv) > 4 else ""
    run = subprocess.run([probe, library] + ([] if name else SECTIONS), capture_output=True, text=True, timeout=280)
    lines = [line.rstrip("\n") for line in open(f"{data}/differences{name}.txt")]
    allowed = [line for line in lines if line[:2] in ("= ", "+ ")]
    skipped = re.compile("|".join(line[2:] for line in lines if line.startswith("~ ")) or "$^")
    ours = [line for line in run.stdout.splitlines() if not skipped.search(line)]
    theirs = [line for line in open(f"{data}/h200{name}.txt").read().splitlines() if not skipped.search(line)]
    expected = collections.Counter(line.replace("= ", "- ", 1) for line in allowed)

    found = collections.Counter()
    for line in difflib.ndiff(theirs, ours):
        if line[:2] in ("- ", "+ "):
            found[line] += 1
    for line in sorted((found - expected).elements(), key=lambda text: text[2:]):
        print("not expected:", line)
    for line in sorted((expected - found).elements(), key=lambda text: text[2:]):
        print("listed in the differences, but not so any more:", line)
    print(len(ours), "answers,", sum(found.values()), "lines differ")
    if run.returncode != 0:
        print("the probe ended with status", run.returncode, run.stderr)
    return int(found != expected or run.returncode != 0)


sys.exit(main())
