#!/usr/bin/env python3
"""Runs one command-line case: a file of RUN, STATUS, OUT, ERR, NOT-OUT and NOT-ERR lines (README.md).

usage: run_case.py CLUSTERLAB CASE
Placeholders in RUN: %clusterlab the program, %here the case's folder, %tree the source tree, %tmp a fresh folder.
Exit status 77 (skipped) when a REQUIRES line names a thing that is not here.
"""
import errno
import os
import re
import shutil
import subprocess
import sys
import tempfile

LIMIT_S = 300


def parse(path):
    case = {"RUN": [], "STATUS": "0", "OUT": [], "ERR": [], "NOT-OUT": [], "NOT-ERR": [], "REQUIRES": [], "FILE": []}
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            line = line.rstrip("\n")
            if not line or line.startswith("#"):
                continue
            key, _, value = line.partition(":")
            if key not in case:
                sys.exit(f"{path}:{number}: unknown key '{key}'")
            if key == "STATUS":
                case[key] = value.strip()
            else:
                case[key].append(value.strip())
    if not case["RUN"] or not (case["OUT"] or case["ERR"] or case["FILE"] or case["STATUS"] != "0"):
        sys.exit(f"{path}: a case without RUN and expectations tests nothing")
    return case


def missing(thing, clusterlab):
    if thing in ("nvrtc", "nvjitlink", "sass"):
        doctor = subprocess.run([clusterlab, "doctor"], capture_output=True, text=True, check=False).stdout
        if thing == "sass":
            return not re.search(r"^(nvdisasm|cuobjdump)\s+ok", doctor, re.MULTILINE)
        return not re.search(r"^" + thing + r"\s+ok", doctor, re.MULTILINE | re.IGNORECASE)
    if thing == "unsanitized":
        return b"__asan_init" in open(clusterlab, "rb").read()
    if thing == "native":
        # e_machine of an ELF file: bytes 18 and 19
        return open(clusterlab, "rb").read(20)[18:] != open(sys.executable, "rb").read(20)[18:]
    if thing == "terminal":
        try:
            for fd in os.openpty():
                os.close(fd)
        except OSError:
            return True
        return False
    if thing in ("gpu", "no-gpu"):
        devices = subprocess.run([clusterlab, "devices", "--device", "cuda:0"], capture_output=True, text=True, check=False)
        return (devices.returncode != 0) == (thing == "gpu")
    return shutil.which(thing) is None


def check(case, path, status, out, err, folder):
    bad = []
    if case["STATUS"] != str(status):
        bad.append(f"exit status {status}, wanted {case['STATUS']}")
    for key, text in (("OUT", out), ("ERR", err)):
        for pattern in case[key]:
            if not re.search(pattern, text, re.MULTILINE):
                bad.append(f"{key}: nothing matches {pattern!r}")
        for pattern in case["NOT-" + key]:
            if re.search(pattern, text, re.MULTILINE):
                bad.append(f"NOT-{key}: something matches {pattern!r}")
    for entry in case["FILE"]:
        name, _, pattern = entry.partition(" ")
        name = os.path.join(folder, name)
        content = open(name, encoding="utf-8").read() if os.path.exists(name) else ""
        if not re.search(pattern, content, re.MULTILINE):
            bad.append(f"FILE {name}: nothing matches {pattern!r}")
    return bad


def main():
    clusterlab, path = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    case = parse(path)
    try:
        subprocess.run([clusterlab, "--version"], stdout=subprocess.DEVNULL, check=False)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        print("skipped: the program is for another machine, and none is emulated (binfmt_misc)")
        sys.exit(77)
    for thing in case["REQUIRES"]:
        if missing(thing, clusterlab):
            print(f"skipped: {thing} is not here")
            sys.exit(77)
    here = os.path.dirname(path)
    tree = os.path.abspath(os.path.join(here, "..", "..", ".."))
    folder = tempfile.mkdtemp(prefix="clusterlab-case-")
    try:
        command = " && ".join(case["RUN"])
        for name, value in (("%clusterlab", clusterlab), ("%here", here), ("%tree", tree), ("%tmp", folder)):
            command = command.replace(name, value)
        environment = dict(os.environ, NO_COLOR="1", CLUSTERLAB_CACHE=os.environ.get("CLUSTERLAB_CACHE", folder + "/cache"))
        try:
            done = subprocess.run(["bash", "-c", command], cwd=tree, env=environment, capture_output=True, text=True,
                                  errors="replace", timeout=LIMIT_S, stdin=subprocess.DEVNULL, check=False)
        except subprocess.TimeoutExpired:
            sys.exit(f"{path}: no end within {LIMIT_S} s\n  {command}")
        for key in ("OUT", "ERR", "NOT-OUT", "NOT-ERR", "FILE"):
            case[key] = [entry.replace("%tmp", re.escape(folder)).replace("%tree", re.escape(tree)) for entry in case[key]]
        bad = check(case, path, done.returncode, done.stdout, done.stderr, folder)
        if bad:
            print(f"{path}\n  {command}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}\n---")
            print("\n".join(bad))
            print(f"again: {sys.argv[0]} {clusterlab} {path}")
            sys.exit(1)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
