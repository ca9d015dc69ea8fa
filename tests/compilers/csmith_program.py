"""A csmith program as one source for the host and for devices (runtime.h).

`whole`: its globals are global variables, and one thread runs it. `threads`: globals and functions are members of a struct,
an object of which each thread has in its local memory, and some integers start with the thread's number mixed in, so that
threads part ways.
"""
import re
import subprocess
import tempfile

OPTIONS = ["--lang-cpp", "--cpp11", "--no-packed-struct", "--no-vol-struct-union-fields"]


def generate(seed, floats, size):
    options = OPTIONS + ["--seed", str(seed), "--max-funcs", str(size)]
    if floats:
        options += ["--float", "--no-unions"]
    with tempfile.TemporaryDirectory() as folder:  # it leaves a platform.info there
        done = subprocess.run(["csmith", *options], capture_output=True, text=True, timeout=60, check=True, cwd=folder)
    return done.stdout


def section(text, begin, end):
    return text[text.index(begin) + len(begin) : text.index(end)]


def hashed(body):
    """csmith's main as a member that mixes every global into the checksum."""
    lines = []
    for line in body.splitlines():
        if "print_hash_value = " in line or "printf(" in line or "platform_main_begin" in line or "crc32_gentab" in line:
            continue
        if "platform_main_end" in line or "return 0;" in line:
            continue
        if line.startswith("int main"):
            line = "void run_all(unsigned vary)"
        line = re.sub(r"transparent_crc_bytes\s*\((?:\(char \*\))?&?\(?(.*?)\)?, sizeof\(.*?\), .*\);", r"mix_float(&sum, \1);", line)
        line = re.sub(r"transparent_crc\((.*), \".*\", print_hash_value\);", r"mix(&sum, (uint64_t)\1);", line)
        lines.append(line)
    return "\n".join(lines)


def program(seed, shape, floats=False, size=6):
    text = generate(seed, floats, size)
    types = section(text, "/* --- Struct/Union Declarations --- */", "/* --- GLOBAL VARIABLES --- */")
    variables = section(text, "/* --- GLOBAL VARIABLES --- */", "/* --- FORWARD DECLARATIONS --- */")
    forward = section(text, "/* --- FORWARD DECLARATIONS --- */", "/* --- FUNCTIONS --- */")
    functions = section(text, "/* --- FUNCTIONS --- */", "int main (")
    main = hashed("int main (" + text[text.index("int main (") + len("int main (") :].split("/****")[0])
    types = types.replace("memcpy(", "copy_bytes(")
    vary = ""
    if shape == "threads":
        names = re.findall(r"^static (?:volatile )?u?int(?:8|16|32|64)_t (g_\d+) = ", variables, re.M)
        vary = "".join(f"    {name} ^= vary * {7 + 2 * i};\n" for i, name in enumerate(names) if (seed + i) % 3 == 0)
        variables = re.sub(r"^static ", "", variables, flags=re.M)
        functions = re.sub(r"^(inline )?static |^static ", "", functions, flags=re.M)
        forward = ""
    main = main.replace("{\n", "{\n" + vary, 1)
    inside = f"struct checksum sum = {{}};\n{variables}\n{forward}\n{functions}\n{main}\n"
    head = '#define SAFE_MATH 1\n#include "runtime.h"\n' + types
    if shape == "threads":
        return head + "struct program {\n" + inside + "};\n" + RUN_THREADS
    return head + inside.replace("void run_all", "static void run_all") + RUN_WHOLE


RUN_THREADS = """
ENTRY run(unsigned *out, unsigned seed)
{
    unsigned thread = THREAD;
    struct program instance;
    instance.run_all(thread + seed);
    out[2 * thread] = (unsigned)instance.sum.state;
    out[2 * thread + 1] = (unsigned)(instance.sum.state >> 32);
}
"""

RUN_WHOLE = """
ENTRY run(unsigned *out, unsigned seed)
{
    (void)seed;
    run_all(0);
    out[0] = (unsigned)sum.state;
    out[1] = (unsigned)(sum.state >> 32);
}
"""
