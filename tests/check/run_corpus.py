#!/usr/bin/env python3
"""Checks kernels that say what the checker must report of them (README.md), and compares.

usage: run_corpus.py [--seeds N] [--summary] CLUSTERLAB FILE|FOLDER...
Exit status 1 when a report differs from what a file expects, 77 when every file needs something that is not here.
"""
import argparse
import collections
import json
import os
import re
import shlex
import subprocess
import sys

KEYS = ("DEVICE", "LAUNCH", "SEEDS", "EXPECT", "ALLOW")
LIMIT_S = 280


class Case:
    """One file: its header, and the lines that carry an @label."""

    def __init__(self, path, seeds):
        self.path, self.name = path, os.path.splitext(os.path.basename(path))[0]
        self.header, self.labels = collections.defaultdict(list), {}
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                key = re.match(r"//\s*([A-Z]+):\s*(.*?)\s*$", line)
                if key and key[1] in KEYS:
                    self.header[key[1]].append(key[2])
                elif not key:
                    for label in re.findall(r"//.*?(@\w+)", line):
                        self.labels[label] = number
        if len(self.header["LAUNCH"]) != 1 or not self.header["EXPECT"]:
            sys.exit(f"{path}: wanted one LAUNCH line and at least one EXPECT line")
        self.device = (self.header["DEVICE"] or ["emu:sm_90"])[0]
        self.seeds = int((self.header["SEEDS"] or [seeds])[0])
        self.allow = set(" ".join(self.header["ALLOW"]).split())
        self.clean = self.header["EXPECT"] == ["clean"]
        self.expected = [] if self.clean else [self.expectation(text) for text in self.header["EXPECT"]]

    def expectation(self, text):
        """KIND[|KIND] [@label[|@label]]... [within X] [count N] as (text, kinds, [lines of a party], within, count)"""
        words, sides, within, count = text.split(), [], None, 1
        kinds, rest = words[0].split("|"), words[1:]
        while rest:
            word = rest.pop(0)
            if word in ("within", "count") and rest:
                within, count = (rest.pop(0), count) if word == "within" else (within, int(rest.pop(0)))
            elif word.startswith("@"):
                unknown = [label for label in word.split("|") if label not in self.labels]
                if unknown:
                    sys.exit(f"{self.path}: no line carries {' or '.join(unknown)}")
                sides.append({self.labels[label] for label in word.split("|")})
            else:
                sys.exit(f"{self.path}: EXPECT: what is '{word}'?")
        return text, kinds, sides, within, count

    def matches(self, expectation, hazard):
        _, kinds, sides, within, count = expectation
        if hazard["kind"] not in kinds or (within and hazard["within"] != within) or hazard["count"] < count:
            return False
        place = "source" if self.path.endswith(".cu") else "ptx"
        lines = [(party or {}).get(place) for party in hazard["parties"]]
        lines = [line["line"] if line else 0 for line in lines]
        if len(sides) == 2:
            return any(lines[i] in sides[0] and lines[1 - i] in sides[1] for i in (0, 1))
        return not sides or any(line in sides[0] for line in lines)

    def judge(self, row, hazards):
        """What is wrong with the report, as lines; none when it is as expected."""
        wrong = []
        if row is None or row["status"] not in ("ok", "hazard"):
            return [f"not judged: {row['status'] + ': ' + row['reason'] if row else 'no row in the report'}"]
        for expectation in self.expected:
            if not any(self.matches(expectation, hazard) for hazard in hazards):
                wrong.append(f"missing: {expectation[0]}")
        for hazard in hazards:
            told = hazard["kind"] in self.allow or any(self.matches(e, hazard) for e in self.expected)
            if self.clean or not told:
                wrong.append(f"not expected: {describe(hazard)}")
        return wrong


def describe(hazard):
    parties = []
    for party in hazard["parties"]:
        place = (party or {}).get("source") or (party or {}).get("ptx")
        if party:
            parties.append(f"{party['action']} at line {place['line'] if place else '?'}")
    return f"{hazard['kind']} within {hazard['within']}, {hazard['count']} times: {' and '.join(parties)}: {hazard['missing']}"


def find(paths):
    for path in paths:
        if os.path.isfile(path):
            yield path
        for folder, _, names in sorted(os.walk(path)):
            for name in sorted(names):
                if name.endswith((".ptx", ".cu")):
                    yield os.path.join(folder, name)


def command_of(clusterlab, files, case):
    return [clusterlab, "check", "--seeds", str(case.seeds), "--device", case.device] + shlex.split(case.header["LAUNCH"][0]) + files


def run(clusterlab, cases):
    """Reports of cases that share their launch, as {name: (row, hazards)}, and what was said on standard error."""
    command = command_of(clusterlab, [case.path for case in cases], cases[0])
    try:
        done = subprocess.run(command + ["--json"], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return {}, f"no end within {LIMIT_S} s"
    rows, hazards = {}, collections.defaultdict(list)
    for line in done.stdout.splitlines():
        record = json.loads(line)
        if record["type"] == "row":
            rows[record["variant"]] = record
        elif record["type"] == "hazard":
            hazards[record["variant"]].append(record)
    return {case.name: (rows.get(case.name), hazards[case.name]) for case in cases}, done.stderr


def has_nvrtc(clusterlab):
    doctor = subprocess.run([clusterlab, "doctor"], capture_output=True, text=True, check=False).stdout
    return re.search(r"^nvrtc\s+ok", doctor, re.MULTILINE | re.IGNORECASE) is not None


def print_summary(results):
    """Precision and recall: of reported kernels, how many are broken; of broken ones, how many are reported as they should."""
    broken = [(case, hazards, wrong) for case, hazards, wrong in results if not case.clean]
    silent = [(case, hazards, wrong) for case, hazards, wrong in results if case.clean]
    found = sum(1 for _, hazards, _ in broken if hazards)
    false = sum(1 for _, hazards, _ in silent if hazards)
    exact = sum(1 for _, _, wrong in broken if not wrong)
    print(f"{len(broken)} broken kernels: {found} reported, {exact} exactly as expected; "
          f"{len(silent)} silent twins: {false} reported")
    print(f"precision {found / max(1, found + false):.3f}, recall {found / max(1, len(broken)):.3f}")
    kinds = collections.Counter()
    for case, _, _ in broken:
        kinds.update({case.expected[0][1][0]})
    for kind, count in sorted(kinds.items()):
        print(f"  {kind}: {count}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("clusterlab")
    parser.add_argument("paths", nargs="+")
    arguments = parser.parse_args()
    clusterlab = os.path.abspath(arguments.clusterlab)
    files = list(find(arguments.paths))
    if any(file.endswith(".cu") for file in files) and not has_nvrtc(clusterlab):
        print("skipped: .cu files, since NVRTC is not here")
        files = [file for file in files if not file.endswith(".cu")]
        if not files:
            sys.exit(77)
    groups, results = collections.defaultdict(list), []
    for file in files:
        case = Case(file, arguments.seeds)
        groups[(os.path.dirname(file), case.device, case.seeds, case.header["LAUNCH"][0])].append(case)
    bad = 0
    for cases in groups.values():
        reports, err = run(clusterlab, cases)
        for case in cases:
            row, hazards = reports.get(case.name, (None, []))
            wrong = case.judge(row, hazards)
            results.append((case, hazards, wrong))
            if wrong:
                bad += 1
                print(f"{case.path}\n  " + "\n  ".join(wrong))
                if row is None:
                    print(err)
                print("  again: " + shlex.join(command_of(clusterlab, [case.path], case)))
    if arguments.summary:
        print_summary(results)
    print(f"{len(results)} kernels, {bad} not as expected")
    sys.exit(1 if bad else 0)


main()
