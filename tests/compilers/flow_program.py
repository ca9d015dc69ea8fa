"""Random control flow in C++: functions that call each other, directly, through tables and recursively; loops with break and
continue, switches, gotos; integers of 8 to 128 bits, floats, bit fields, arrays with computed indices, unaligned copies.

Nothing in it is undefined, and each thread starts from its own seed, so that warps diverge everywhere.
"""
import random

INTS = ["uint8_t", "int8_t", "uint16_t", "int16_t", "uint32_t", "int32_t", "uint64_t", "int64_t", "u128", "i128"]
FLOATS = ["float", "double"]


class Function:
    def __init__(self, rng, index, total):
        self.rng, self.index, self.total = rng, index, total
        self.names = 0
        self.scopes = [[]]  # (name, type)
        self.loops = 0
        self.depth = 0
        self.labels = 0

    def fresh(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    def variables(self, types):
        return [name for scope in self.scopes for name, kind in scope if kind in types]

    # --- expressions: integer ones are uint64_t or narrower by casts; all arithmetic is unsigned
    def integer(self, depth=3):
        rng = self.rng
        if depth == 0 or rng.random() < 0.15:
            names = self.variables(INTS)
            if names and rng.random() < 0.75:
                return f"(uint64_t){rng.choice(names)}"
            return rng.choice([f"{rng.randrange(256)}ul", f"{rng.getrandbits(64)}ul", f"0x{rng.getrandbits(32):x}ul", "thread()"])
        a = self.integer(depth - 1)
        kind = rng.randrange(22)
        kind32 = rng.choice(["uint32_t", "uint64_t", "uint16_t", "uint8_t", "u128"])
        b = self.integer(depth - 1)
        if kind < 6:
            wide = "(uint32_t)" if kind32 in ("uint8_t", "uint16_t") else ""  # int is too narrow for their products
            return f"(uint64_t)({wide}({kind32})({a}) {rng.choice(['+', '-', '*', '^', '&', '|'])} ({kind32})({b}))"
        if kind == 6:
            kind32 = "uint64_t" if kind32 == "u128" else kind32  # clang has no division of 128 bits for this target
            return f"(uint64_t)(({kind32})({a}) {rng.choice(['/', '%'])} ((({kind32})({b})) | 1))"
        if kind == 7:
            narrow = rng.choice(["int32_t", "int64_t", "int16_t"])
            return f"(uint64_t)(({narrow})({a}) {rng.choice(['/', '%'])} ({narrow})((({narrow})({b}) & 0x7f) + 3))"
        if kind == 8:
            bits = {"uint8_t": 8, "uint16_t": 16, "uint32_t": 32, "uint64_t": 64, "u128": 128}[kind32]
            wide = "(uint32_t)" if kind32 in ("uint8_t", "uint16_t") else ""
            return f"(uint64_t)({wide}({kind32})({a}) {rng.choice(['<<', '>>'])} (({b}) & {bits - 1}))"
        if kind == 9:
            narrow, bits = rng.choice([("int8_t", 8), ("int16_t", 16), ("int32_t", 32), ("int64_t", 64), ("i128", 128)])
            return f"(uint64_t)(({narrow})({a}) >> (({b}) & {bits - 1}))"
        if kind == 10:
            return f"(({a}) {rng.choice(['<', '>', '==', '!=', '<=', '>='])} ({b}) ? ({self.integer(depth - 1)}) : ({self.integer(depth - 1)}))"
        if kind == 11:
            narrow = rng.choice(["int8_t", "int16_t", "int32_t", "int64_t"])
            return f"(uint64_t)(({narrow})({a}) {rng.choice(['<', '>', '==', '<=', '>='])} ({narrow})({b}))"
        if kind == 12:
            name, arity = rng.choice([("brev32", 1), ("brev64", 1), ("clz32", 1), ("clz64", 1), ("popc32", 1), ("popc64", 1), ("mulhi32", 2),
                                      ("mulhi64", 2), ("smulhi32", 2), ("smulhi64", 2), ("perm", 3), ("fshl", 3), ("fshr", 3), ("sad", 3),
                                      ("dp4a", 3), ("bfe_u", 3), ("bfe_s", 3), ("shl_clamp", 2), ("shr_clamp", 2), ("sshr_clamp", 2), ("add2", 2),
                                      ("max4s", 2), ("avg4", 2), ("bfi", 4), ("lop", 3), ("ffs64", 1), ("absdiff4", 2), ("sub_sat", 2)])  # fmt: skip
            rest = [a, b, self.integer(depth - 1), self.integer(0)][:arity]
            return f"{name}({', '.join(rest)})"
        if kind == 13 and self.index + 1 < self.total and self.loops < 2:
            callee = rng.randrange(self.index + 1, self.total)
            return f"f{callee}(fuel - 1, {a}, (uint32_t)({b}), {self.real(0, 'float')})"
        if kind == 14 and self.index + 2 < self.total and self.loops < 2:
            return f"table{self.index}[({a}) % {self.total - self.index - 1}](fuel - 1, {b}, (uint32_t)({a}), 1.5f)"
        if kind == 15 and self.loops == 0:
            return f"(fuel > 0 ? f{self.index}(fuel - 1, {a}, (uint32_t)({b}), 0.25f) : {self.integer(0)})"
        if kind == 16:
            return f"(uint64_t)to_int({self.real(depth - 1, 'double')})"
        if kind == 17:
            return f"(uint64_t)~({a})"
        if kind == 18:
            return f"(uint64_t)-({kind32})({a})"
        if kind == 19:
            return f"(uint64_t)array[({a}) & 7]"
        if kind == 20:
            return f"load{rng.choice([16, 32, 64])}(bytes + (({a}) & 7))"
        return f"(uint64_t)(bits.{rng.choice(['a', 'b', 'c', 'd', 'e'])})"

    def real(self, depth, kind):
        rng = self.rng
        names = self.variables([kind])
        if depth <= 0 or rng.random() < 0.2:
            if names and rng.random() < 0.7:
                return rng.choice(names)
            return f"({kind})({rng.choice(['1.5', '-0.25', '3e10', '1e-3', '0.0', '-7.0', '1e30', '123.456'])})"
        a, b = self.real(depth - 1, kind), self.real(depth - 1, kind)
        what = rng.randrange(8)
        if what < 4:
            return f"(({a}) {rng.choice('+-*/')} ({b}))"
        if what == 4:
            return f"({kind})(int32_t)({self.integer(depth - 1)})"
        if what == 5:
            return f"({kind})({self.integer(depth - 1)})"
        if what == 6:
            return f"({kind})({self.real(depth - 1, 'double' if kind == 'float' else 'float')})"
        return f"(({a}) < ({b}) ? ({a}) : ({b}))"

    # --- statements
    def assign(self):
        rng = self.rng
        kind = rng.randrange(8)
        if kind < 4:
            names = [(n, t) for scope in self.scopes for n, t in scope if t in INTS and not n.startswith("i")]
            name, of = rng.choice(names)
            return f"{name} {rng.choice(['=', '=', '^=', '|=', '&='])} ({of})({self.integer()});"
        if kind == 4:
            of = rng.choice(FLOATS)
            names = self.variables([of])
            if names:
                return f"{rng.choice(names)} = {self.real(3, of)};"
            return f"state ^= {self.integer()};"
        if kind == 5:
            return f"array[({self.integer(1)}) & 7] = (uint16_t)({self.integer(2)});"
        if kind == 6:
            width = rng.choice([16, 32, 64])
            return f"store{width}(bytes + (({self.integer(1)}) & 7), {self.integer(2)});"
        return f"bits.{rng.choice('abcde')} = (uint32_t)({self.integer(2)});"

    def block(self, depth, indent):
        rng, out = self.rng, []
        pad = "    " * indent
        self.scopes.append([])
        for _ in range(rng.randint(1, 3)):
            kind = rng.choice(INTS + FLOATS)
            name = self.fresh("v")
            value = self.real(2, kind) if kind in FLOATS else f"({kind})({self.integer(2)})"
            out.append(f"{pad}{kind} {name} = {value};")
            self.scopes[-1].append((name, kind))
        for _ in range(rng.randint(1, 4)):
            out.append(self.statement(depth, indent))
        # what the block computed is not dropped
        for name, kind in self.scopes[-1]:
            mixed = f"hash_float((double){name})" if kind in FLOATS else f"(uint64_t){name}"
            out.append(f"{pad}state = state * 0x9E3779B97F4A7C15ul + {mixed};")
        self.scopes.pop()
        return "\n".join(out)

    def statement(self, depth, indent):
        rng, pad = self.rng, "    " * indent
        kind = rng.randrange(12) if depth > 0 else 0
        if kind < 4:
            return pad + self.assign()
        if kind < 6:
            text = f"{pad}if ({self.integer(2)} & {rng.choice([1, 2, 4, 8])}) {{\n{self.block(depth - 1, indent + 1)}\n{pad}}}"
            if rng.random() < 0.5:
                text += f" else {{\n{self.block(depth - 1, indent + 1)}\n{pad}}}"
            return text
        if kind < 8 and self.loops < 2:
            i = self.fresh("i")
            self.loops += 1
            self.scopes.append([(i, "uint32_t")])
            body = self.block(depth - 1, indent + 1)
            leave = rng.choice(["break", "continue", "break"])
            at = f"{pad}    if ((state >> {rng.randrange(60)} & 7) == {rng.randrange(8)})\n{pad}        {leave};\n"
            front = rng.random() < 0.5
            self.scopes.pop()
            self.loops -= 1
            bound = f"(uint32_t)({self.integer(1)}) % {rng.randint(2, 5)} + 1"
            head = rng.choice([f"for (uint32_t {i} = 0, n{i} = {bound}; {i} < n{i}; {i}++)",
                               f"for (uint32_t {i} = {bound}; {i}-- > 0;)"])  # fmt: skip
            return f"{pad}{head} {{\n{at if front else ''}{body}\n{'' if front else at}{pad}}}"
        if kind < 10:
            dense = rng.random() < 0.6
            count = rng.randint(3, 9)
            values = list(range(count)) if dense else rng.sample(range(200), count)
            text = f"{pad}switch ((uint32_t)({self.integer(1)}) % {count + 2 if dense else 200}) {{\n"
            for value in values:
                text += f"{pad}case {value}: {{\n{self.block(min(depth - 1, 1), indent + 1)}\n{pad}}}\n"
                if rng.random() < 0.7:
                    text += f"{pad}    break;\n"
            return text + f"{pad}default:\n{pad}    state += {rng.getrandbits(30)};\n{pad}}}"
        if kind == 10 and self.loops == 0:
            self.labels += 1
            label = f"L{self.labels}"
            return (f"{pad}{{\n{pad}    uint32_t again{label} = 0;\n{pad}{label}:\n{self.block(depth - 1, indent + 1)}\n"
                    f"{pad}    if (state & 1 && again{label}++ < 3)\n{pad}        goto {label};\n{pad}}}")  # fmt: skip
        return f"{pad}if (fuel == 0 && (state & 3) == {rng.randrange(4)})\n{pad}    return state;"

    def text(self):
        self.scopes = [[("state", "uint64_t"), ("a", "uint64_t"), ("b", "uint32_t"), ("c", "float")]]
        body = self.block(3, 1)
        args = "uint32_t fuel, uint64_t a, uint32_t b, float c"
        inline = self.rng.choice(["NOINLINE ", "NOINLINE ", ""])
        return (f"{inline}static uint64_t f{self.index}({args})\n{{\n    uint64_t state = a ^ b;\n    if (fuel > 64)\n        return a + b;\n"
                "    uint16_t array[8] = {1, 2, 3, 5, 8, 13, 21, 34};\n    uint8_t bytes[16] = {9, 8, 7, 6, 5, 4, 3, 2, 1};\n"
                "    struct fields bits = {};\n    bits.b = (int32_t)b;\n"
                f"{body}\n    for (uint32_t i = 0; i < 8; i++)\n        state = state * 31 + array[i];\n"
                "    for (uint32_t i = 0; i < 16; i++)\n        state = state * 33 + bytes[i];\n"
                "    return state + bits.a + bits.d * 3 + (uint64_t)bits.e;\n}\n")  # fmt: skip


def program(seed):
    rng = random.Random(seed)
    total = rng.randint(2, 5)
    args = "uint32_t fuel, uint64_t a, uint32_t b, float c"
    text = '#include "runtime.h"\n#include "helpers.h"\n\n'
    for index in range(total):
        text += f"static uint64_t f{index}({args});\n"
    for index in range(total - 2):
        names = ", ".join(f"f{i}" for i in range(index + 1, total))
        text += f"TABLE uint64_t (*const table{index}[])({args}) = {{{names}}};\n"
    for index in range(total):
        text += "\n" + Function(rng, index, total).text()
    return text + """
ENTRY run(unsigned *out, unsigned seed)
{
    unsigned of = THREAD;
    uint64_t result = f0(2, (of + seed) * 0x9E3779B97F4A7C15ul, of * 7 + 1, (float)of);
    out[2 * of] = (unsigned)result;
    out[2 * of + 1] = (unsigned)(result >> 32);
}
"""
