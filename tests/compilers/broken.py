#!/usr/bin/env python3
"""differential.py must notice a wrong word, and a program that faults; run_ptx.py also one whose process dies.

usage: broken.py CLUSTERLAB
"""
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile

import differential
import ptx_program
import run_ptx


def says(change, expected):
    """Runs one ptx program with (text, words) changed; what is printed must hold `expected`, and the status be 1."""
    differential.KINDS["ptx"].make = lambda seed: change(*ptx_program.program(seed))
    sys.argv = ["differential.py", sys.argv[1], "--kinds", "ptx", "--count", "1"]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        status = differential.main()
    if status != 1 or expected not in out.getvalue():
        sys.exit(f"status {status}, wanted 1 and '{expected}' in\n{out.getvalue()}")


says(lambda text, words: (text, [*words[:7], words[7] ^ 1, *words[8:]]), "1 of 128 words, the first is 7")
says(lambda text, words: (text.replace("st.global.u64 [to], total", "st.global.u64 [0+total], total").replace("[0+total]", "[total]"), words), "CUDA_ERROR_")
says(lambda text, words: (text.replace("mov.u64 total, 0;", "mov.u64 total, 0; frob;"), words), "CUDA_ERROR_INVALID_PTX")


def process(code, wanted, expected):
    what = run_ptx.verdict([sys.executable, "-c", code], wanted)
    if what != expected:
        sys.exit(f"run_ptx.py says '{what}', wanted '{expected}'")


process("print(1, 2, 3)", [1, 2, 3], "")
process("print(1, 2, 3)", [1, 9, 3], "1 of 3 words differ, the first is 1\n  word 1: got 00000002, wanted 00000009")
process("print(1, 2)", [1, 2, 3], "2 words, not 3")
process("import os; os.kill(os.getpid(), 11)", [1], "ended by SIGSEGV")
process("import sys; sys.exit('cuInit: lost')", [1], "cuInit: lost")
if run_ptx.verdict([sys.executable, "-c", "print(*[0] * 99)"], [1] * 99).count("word ") != run_ptx.SHOWN:
    sys.exit("run_ptx.py does not stop showing words")

# A list: what fails costs its own row.
doctor = subprocess.run([sys.argv[1], "doctor"], capture_output=True, text=True, check=False).stdout
driver = re.search(r"^stand-in driver +ok +\S+ +(\S+)", doctor, re.M).group(1)
with tempfile.TemporaryDirectory() as folder:
    text, words = ptx_program.program(1)
    for name, body in ("bad", text.replace("mov.u64 total, 0;", "frob;")), ("good", text):
        with open(os.path.join(folder, name), "w", encoding="ascii") as file:
            file.write(body)
    with open(os.path.join(folder, "words"), "w", encoding="ascii") as file:
        file.write(" ".join(map(str, words)))
    with open(os.path.join(folder, "list"), "w", encoding="ascii") as file:
        file.write("bad run 64 words\ngood run 64 words\nmissing run 64 words\ngood run 64 words\n")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        status = run_ptx.run_list(driver, os.path.join(folder, "list"), 2)
    for expected in "bad: cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX", "missing: ", "2 the same, 2 not":
        if status != 1 or expected not in out.getvalue():
            sys.exit(f"status {status}, wanted 1 and '{expected}' in\n{out.getvalue()}")
