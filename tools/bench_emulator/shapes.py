"""PTX files of a megabyte each, for the time that parsing and decoding take; the same at every run.

many       kernels of 500 instructions, 64 registers and 25 blocks
small      thousands of kernels of three instructions
line       one kernel without a branch
blocks     one kernel, a branch after every third instruction
loops      one kernel, every third instruction a branch back: loops that overlap
registers  one kernel in single-assignment form, as compilers write it, with a branch after every tenth instruction
"""
import random

BYTES = 1 << 20
HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
FORMS = ["add.u32 %r{d}, %r{a}, %r{b};", "mad.lo.s32 %r{d}, %r{a}, %r{b}, {k};", "fma.rn.f32 %f{d}, %f{a}, %f{b}, %f{c};",
         "setp.lt.u32 %p{p}, %r{a}, {k};", "@%p{p} xor.b32 %r{d}, %r{a}, %r{b};", "cvt.rn.f32.u32 %f{d}, %r{a};",
         "ld.global.f32 %f{d}, [%rd1+{m}];", "st.shared.u32 [tile+{m}], %r{a};", "shl.b32 %r{d}, %r{a}, 3;",
         "mul.wide.u32 %rd{q}, %r{a}, 4;", "selp.b32 %r{d}, %r{a}, %r{b}, %p{p};", "mov.u32 %r{d}, %tid.x;",
         "lop3.b32 %r{d}, %r{a}, %r{b}, %r{c}, 0x96;", "shfl.sync.bfly.b32 %r{d}, %r{a}, 1, 31, 0xffffffff;"]


def random_kernel(pick, name, most_bytes, per_block, target):
    """Random instructions on 64 registers; target(block) is where the branch at the end of a block goes, None: no branches."""
    text = [f".visible .entry {name}(.param .u64 input)\n{{\n    .reg .pred %p<16>;\n    .reg .u32 %r<64>;\n"
            "    .reg .f32 %f<64>;\n    .reg .u64 %rd<16>;\n    .shared .align 4 .b8 tile[4096];\n"
            "    ld.param.u64 %rd1, [input];\n"]
    size, blocks, highest = 0, 0, 0
    while size < most_bytes:
        block = [f"L{blocks}:\n"] if target else []
        for _ in range(per_block):
            values = {letter: pick.randrange(64) for letter in "abcd"}
            form = pick.choice(FORMS).format(p=pick.randrange(16), q=pick.randrange(2, 16), k=pick.randrange(1 << 20),
                                             m=4 * pick.randrange(1024), **values)
            block.append(f"    {form}\n")
        if target:
            to = target(blocks)
            highest = max(highest, to)
            block.append(f"    @%p{pick.randrange(16)} bra L{to};\n")
        text += block
        size += sum(map(len, block))
        blocks += 1
    text += [f"L{label}:\n" for label in range(blocks, highest + 1)]
    return "".join(text) + "    ret;\n}\n"


def single_assignment(pick, most_bytes):
    text = [".visible .entry registers(.param .u64 input)\n{\n    .reg .pred %p<100000>;\n    .reg .u32 %r<100000>;\n"
            "    .reg .u64 %rd<2>;\n    ld.param.u64 %rd1, [input];\n    mov.u32 %r0, %tid.x;\n"]
    size, i = 0, 1
    while size < most_bytes:
        near = max(0, i - 1 - int(pick.expovariate(0.1))) if pick.random() < 0.9 else pick.randrange(i)
        line = f"    add.s32 %r{i}, %r{i - 1}, %r{near};\n"
        if i % 8 == 0:
            line += f"    setp.eq.s32 %p{i}, %r{i}, {i};\n    @%p{i} bra L{i};\n    st.global.u32 [%rd1], %r{i};\nL{i}:\n"
        text.append(line)
        size += len(line)
        i += 1
    return "".join(text) + f"    st.global.u32 [%rd1], %r{i - 1};\n    ret;\n}}\n"


def small_kernel(name):
    return (f".visible .entry {name}(.param .u64 out)\n{{\n    .reg .u64 %r<2>;\n    ld.param.u64 %r1, [out];\n"
            "    st.global.u64 [%r1], %r1;\n    ret;\n}\n")


def write(folder):
    """Writes all of them; returns their names."""
    pick = random.Random(1)

    def near(block):
        return pick.choice([block, block + 2])

    texts = {
        "many": "".join(random_kernel(pick, f"kernel_{i}", BYTES // 64, 20, near) for i in range(64)),
        "small": "".join(small_kernel(f"kernel_{i}") for i in range(BYTES // len(small_kernel("kernel_1000")))),
        "line": random_kernel(pick, "line", BYTES, 1, None),
        "blocks": random_kernel(pick, "blocks", BYTES, 3, near),
        "loops": random_kernel(pick, "loops", BYTES, 2, lambda block: pick.randrange(block + 1)),
        "registers": single_assignment(pick, BYTES),
    }
    for name, text in texts.items():
        with open(f"{folder}/{name}.ptx", "w") as file:
            file.write(HEAD + text)
    return list(texts)
