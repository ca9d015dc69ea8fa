"""Writes the code blocks of a README, one language's, into a file: code_blocks.py README LANGUAGE OUT."""
import re
import sys

text = open(sys.argv[1], encoding="utf-8").read()
blocks = re.findall(r"^```" + sys.argv[2] + r"\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
if not blocks:
    sys.exit(f"{sys.argv[1]} has no block of {sys.argv[2]}")
open(sys.argv[3], "w", encoding="utf-8").write("".join(blocks))
