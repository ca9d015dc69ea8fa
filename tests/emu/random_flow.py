#!/usr/bin/env python3
"""Random control flow against a scalar reference: what every lane computes must not depend on how the warp diverges.

usage: random_flow.py CLUSTERLAB [FIRST_SEED [COUNT [ISA]]]

Each program is a handful of basic blocks that mix a hash into one register and end in a conditional or unconditional branch
to another block, mostly a little further on, some back; predicates depend on the lane and on the state, and every lane stops
after a bounded number of backward branches. A few more registers of each program's own are kept across blocks, written by some
lanes only, and computed through registers that nothing else names: the emulator lets registers share rows, and this is what
would show it if two that live at once did. The reference runs one lane at a time. On a difference the program is kept and the rerun line printed.
"""
import os
import random
import subprocess
import sys
import tempfile

LANES, MASK = 64, 0xFFFFFFFF
BATCH = 50  # programs in one launch
FUEL = 40  # backward branches a lane may come to
KEPT = 4  # registers that live across blocks


def make(seed):
    """Blocks as dicts; block i ends in `taken` when `test` holds, else goes to `other`. Mostly short forward branches, so
    that regions overlap and share their ends; some backward ones."""
    rng = random.Random(seed)
    size = rng.randint(3, 16)
    blocks = []
    for index in range(size):
        back = rng.random() < 0.2
        block = {
            "mul": rng.randrange(1, 1 << 16) * 2 + 1,
            "test": rng.choice(["lane", "lane", "state", "both", "never", "always", "goto", "goto"]),
            "bit": rng.randrange(32),
            "lane": rng.randrange(4),
            "work": rng.random() < 0.5,
            "keep": rng.random() < 0.5,
            "from": rng.randrange(KEPT),
            "to": rng.randrange(KEPT),
            "some": rng.random() < 0.5,  # written by the lanes of one quarter
            "add": rng.randrange(1 << 32),
            "back": back,
            "taken": max(0, index - rng.choice([0, 0, 0, 1, 2, 5])) if back else min(size, index + rng.randint(2, 4)),
            "other": index + 1,
        }
        blocks.append(block)
    return blocks


def holds(block, lane, state):
    if block["test"] in ("always", "goto"):
        return True
    if block["test"] == "never":
        return False
    if block["test"] == "lane":
        return lane % 4 == block["lane"]
    if block["test"] == "state":
        return (state >> block["bit"]) & 1 == 1
    return ((state >> block["bit"]) ^ lane) & 1 == 1


def reference(blocks, lane):
    state, at, fuel, kept = (lane * 2654435761) & MASK, 0, FUEL, [lane + i for i in range(KEPT)]
    while at < len(blocks):
        block = blocks[at]
        if block["work"]:
            state = (state * block["mul"] + block["add"]) & MASK
        if block["keep"]:
            value = (kept[block["from"]] * block["mul"] >> 3) & MASK
            if not block["some"] or lane % 4 == block["lane"]:
                kept[block["to"]] = value ^ state
            state = (state + kept[block["from"]]) & MASK
        taken = holds(block, lane, state)
        if block["back"] and taken:
            taken = fuel > 0
            fuel -= taken
        at = block["taken"] if taken else block["other"]
    return state


def ptx(programs):
    """One kernel that runs the programs one after another; lane t of program k stores to out[k * LANES + t]."""
    lines = [
        ".version 8.0\n.target sm_90\n.address_size 64",
        ".visible .entry flow(.param .u64 out)\n{",
        ".reg .pred p;\n.reg .b32 lane, state, fuel, t, u, quarter;\n.reg .b64 address, offset;",
        "ld.param.u64 address, [out];\nmov.u32 lane, %tid.x;\nmul.wide.u32 offset, lane, 4;",
        "add.u64 address, address, offset;\nand.b32 quarter, lane, 3;",
    ]
    for number, blocks in enumerate(programs):
        name = [f"P{number}B{i}" for i in range(len(blocks))] + [f"P{number}DONE"]
        lines.append(f"mul.lo.u32 state, lane, 2654435761;\nmov.u32 fuel, {FUEL};")
        lines += [f".reg .b32 k{number}_{i};\nadd.u32 k{number}_{i}, lane, {i};" for i in range(KEPT)]
        for index, block in enumerate(blocks):
            lines.append(f"{name[index]}:")
            if block["work"]:
                lines.append(f"mad.lo.u32 state, state, {block['mul']}, {block['add']};")
            if block["keep"]:
                own, source, to = f"{number}_{index}", f"k{number}_{block['from']}", f"k{number}_{block['to']}"
                lines.append(f".reg .pred q{own};\n.reg .b32 v{own}, w{own};\n.reg .b64 x{own}, y{own};")
                lines.append(f"mul.wide.u32 x{own}, {source}, {block['mul']};\nshr.u64 y{own}, x{own}, 3;")
                lines.append(f"cvt.u32.u64 v{own}, y{own};\nsetp.eq.u32 q{own}, quarter, {block['lane']};")
                lines.append(f"xor.b32 w{own}, v{own}, state;")
                lines.append(f"{f'@q{own} ' if block['some'] else ''}mov.b32 {to}, w{own};\nadd.u32 state, state, {source};")
            if block["test"] == "goto" and not block["back"]:
                lines.append(f"bra.uni {name[block['taken']]};")
                continue
            if block["test"] == "lane":
                lines.append(f"setp.eq.u32 p, quarter, {block['lane']};")
            elif block["test"] in ("state", "both"):
                lines.append(f"shr.u32 t, state, {block['bit']};")
                if block["test"] == "both":
                    lines.append("xor.b32 t, t, lane;")
                lines.append("and.b32 u, t, 1;\nsetp.eq.u32 p, u, 1;")
            else:
                lines.append(f"setp.{'ne' if block['test'] == 'never' else 'eq'}.u32 p, lane, lane;")
            if block["back"]:
                lines.append("setp.ne.and.u32 p, fuel, 0, p;\n@p sub.u32 fuel, fuel, 1;")
            lines.append(f"@p bra {name[block['taken']]};")
        lines.append(f"{name[-1]}:\nst.global.u32 [address + {4 * LANES * number}], state;")
    lines.append("ret;\n}")
    return "\n".join(lines) + "\n"


def run(clusterlab, isa, programs):
    """What the emulator stored, and the file that it ran."""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx", prefix="random_flow_", delete=False) as file:
        file.write(ptx(programs))
    command = [clusterlab, "launch", file.name, "flow", "--grid", "1", "--block", str(LANES), "--device", "emu:sm_90",
               "--emu-isa", isa, "--arg", f"out=u32[{LANES * len(programs)}]:0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    if done.returncode != 0:
        sys.exit(f"{file.name}: status {done.returncode}\n{done.stderr}")
    words = done.stdout.split("counted on")[0].replace("out =", "").split()
    return [int(word) for word in words if word[0] != "["], file.name  # [16] leads a line: the index


def main():
    clusterlab = sys.argv[1]
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 2000
    isa = sys.argv[4] if len(sys.argv) > 4 else "auto"
    bad = []
    for start in range(first, first + count, BATCH):
        seeds = range(start, min(start + BATCH, first + count))
        programs = [make(seed) for seed in seeds]
        got, name = run(clusterlab, isa, programs)
        wrong = [seed for k, seed in enumerate(seeds)
                 if got[k * LANES:(k + 1) * LANES] != [reference(programs[k], lane) for lane in range(LANES)]]
        for seed in wrong:
            print(f"seed {seed} differs (in {name}); again: {sys.argv[0]} {clusterlab} {seed} 1")
        bad += wrong
        if not wrong:
            os.unlink(name)
    print(f"{count - len(bad)} of {count} programs agree")
    sys.exit(1 if bad else 0)


main()
