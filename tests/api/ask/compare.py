#!/usr/bin/env python3
"""Compares what the stand-in answers to `ask` with what a GPU's driver answered.

usage: compare.py ASK LIBCUDA RECORD DIFFERENCES [SECTION]…

RECORD is the output of ASK on a GPU (README.md says how it is made). DIFFERENCES lists the answers that may differ, each group
under a comment with the reason: "= line" is a line of the record that the stand-in answers otherwise, the "+ line" below it is
what it answers instead; "~ pattern" names questions that are not compared. A question at which the GPU's driver crashed or hung
needs any answer at all. A difference that is not listed, and a listed one that has gone, both fail. Sections that the record does
not have were not put to a GPU yet: they are named, and need any answers.
"""
import os
import re
import subprocess
import sys

ANSWER = re.compile(r"^(.*?): ((?:-?\d+\b.*)|crashes|hangs)$")
NO_ANSWER = ("crashes", "hangs")


def answers(lines):
    """The answers by question; a question that is put again is counted up."""
    found, times = {}, {}
    for line in lines:
        match = ANSWER.match(line)
        question, answer = match.groups() if match else (line, "")
        if match and re.match(r"\d", match.group(2)) is None and answer not in NO_ANSWER and answer[0] != "-":
            question, answer = line, ""
        times[question] = times.get(question, 0) + 1
        if times[question] > 1:
            question += " #%d" % times[question]
        found[question] = answer
    return found


def main():
    ask, library, record, differences = sys.argv[1:5]
    sections = sys.argv[5:]
    environment = dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(os.path.abspath(library)))
    run = subprocess.run([ask] + sections, capture_output=True, text=True, timeout=580, env=environment)
    ours = answers(run.stdout.splitlines())
    theirs = answers(open(record).read().splitlines())
    listed = [line.rstrip("\n") for line in open(differences)]
    skipped = re.compile("|".join(line[2:] for line in listed if line.startswith("~ ")) or "$^")
    may_be = answers([line[2:] for line in listed if line.startswith("= ")])
    instead = answers([line[2:] for line in listed if line.startswith("+ ")])
    recorded = {question.split("/")[0] for question in theirs}
    unrecorded = {question.split("/")[0] for question in ours} - recorded
    wrong = 0

    def tell(*words):
        nonlocal wrong
        wrong += 1
        print(*words)

    for question in sorted(set(ours) | set(theirs)):
        section = question.split("/")[0]
        if skipped.search(question) or section in unrecorded or (sections and section not in sections):
            continue
        mine, its = ours.get(question), theirs.get(question)
        if its in NO_ANSWER and mine not in NO_ANSWER:
            continue
        if question in may_be:
            if (its, mine) != (may_be[question], instead.get(question)):
                tell("listed, but not so any more: %s\n  GPU %s, listed as %s\n  stand-in %s, listed as %s"
                     % (question, its, may_be[question], mine, instead.get(question)))
        elif mine != its:
            tell("not expected\n= %s: %s\n+ %s: %s" % (question, its, question, mine))
    for question in sorted(set(may_be) - set(theirs)):
        tell("listed, but never asked:", question)
    print("%d answers, %d of them listed as different, %d wrong" % (len(ours), len(may_be), wrong))
    if unrecorded:
        print("not put to a GPU yet:", ", ".join(sorted(unrecorded)))
    if run.returncode != 0:
        print("ask ended with status", run.returncode, run.stderr)
    return int(wrong > 0 or run.returncode != 0 or not ours)


sys.exit(main())
