#!/usr/bin/env python3
"""differential.py must notice a wrong word, and a program that faults.

usage: broken.py CLUSTERLAB
"""
import contextlib
import io
import sys

import differential
import ptx_program


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
