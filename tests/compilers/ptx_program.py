"""PTX that no compiler writes: basic blocks that branch anywhere, forwards and back, whose instructions have guards of all
kinds, on registers of 1 to 64 bits; packs and unpacks, carry chains, pairs of predicates, vectors in local memory, tables of
branches, calls with .param and .reg parameters. Walked lane by lane here.
"""
import random

BITS = {"h": 16, "r": 32, "d": 64}
COUNT = {"h": 8, "r": 10, "d": 6, "p": 6}
FUEL = 60


def mask(bits):
    return (1 << bits) - 1


def signed(x, bits):
    x &= mask(bits)
    return x - (1 << bits) if x >> (bits - 1) else x


class Block:
    def __init__(self):
        self.code = []  # (guard, text, function of state)
        self.end = None


class Maker:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.slot = 0

    def reg(self, kind):
        return f"{kind}{self.rng.randrange(COUNT[kind])}"

    def value(self, kind):
        """An operand to read: register or constant, as (text, function)."""
        if self.rng.random() < 0.2:
            n = self.rng.choice([0, 1, 3, 7, 31, 255, self.rng.getrandbits(BITS[kind])])
            if kind == "d":
                n = self.rng.choice([n, self.rng.getrandbits(31)])
            return str(n), lambda s, n=n: n
        name = self.reg(kind)
        return name, lambda s, name=name: s[name]

    def instruction(self):
        rng = self.rng
        guard = None
        if rng.random() < 0.35:
            guard = (self.reg("p"), rng.random() < 0.4)
        kind = rng.choice("hrrd")
        bits = BITS[kind]
        d = self.reg(kind)
        at, a = self.value(kind)
        bt, b = self.value(kind)
        what = rng.randrange(24)

        def put(name, f):
            def do(s):
                s[name] = f(s)
            return do

        if what < 4:
            op = rng.choice(["add", "sub", "mul.lo"])
            f = {"add": lambda s: (a(s) + b(s)) & mask(bits), "sub": lambda s: (a(s) - b(s)) & mask(bits), "mul.lo": lambda s: (a(s) * b(s)) & mask(bits)}[op]
            return guard, f"{op}.u{bits} {d}, {at}, {bt};", put(d, f)
        if what == 4:
            op = rng.choice(["and", "or", "xor"])
            f = {"and": lambda s: a(s) & b(s), "or": lambda s: a(s) | b(s), "xor": lambda s: a(s) ^ b(s)}[op]
            return guard, f"{op}.b{bits} {d}, {at}, {bt};", put(d, f)
        if what == 5:
            ct, c = self.value("r")
            op = rng.choice(["shl.b", "shr.u", "shr.s"])
            def shift(s):
                n = min(c(s), bits)
                if op == "shl.b":
                    return (a(s) << n) & mask(bits)
                if op == "shr.u":
                    return (a(s) & mask(bits)) >> n
                return (signed(a(s), bits) >> min(n, bits - 1)) & mask(bits)
            return guard, f"{op}{bits} {d}, {at}, {ct};", put(d, shift)
        if what == 6:
            p, q = self.reg("p"), self.reg("p")
            ct, c = self.reg("p"), None
            op, of = rng.choice(["lt", "gt", "eq", "ne", "le", "ge"]), rng.choice("us")
            join = rng.choice(["", "", ".and", ".or", ".xor"])
            negated = rng.random() < 0.4
            two = rng.random() < 0.5 and p != q
            def compare(s):
                x, y = (a(s) & mask(bits), b(s) & mask(bits)) if of == "u" else (signed(a(s), bits), signed(b(s), bits))
                t = {"lt": x < y, "gt": x > y, "eq": x == y, "ne": x != y, "le": x <= y, "ge": x >= y}[op]
                c = bool(s[ct]) != negated
                apply = {"": lambda u: u, ".and": lambda u: u and c, ".or": lambda u: u or c, ".xor": lambda u: u != c}[join]
                s[p], other = int(apply(t)), int(apply(not t))
                if two:
                    s[q] = other
            text = f"setp.{op}{join}.{of}{bits} {p}{'|' + q if two else ''}, {at}, {bt}" + (f", {'!' if negated else ''}{ct}" if join else "") + ";"
            return guard, text, compare
        if what == 7:
            p = self.reg("p")
            return guard, f"selp.b{bits} {d}, {at}, {bt}, {p};", put(d, lambda s: (a(s) if s[p] else b(s)) & mask(bits))
        if what == 8:
            x, y = self.reg("r"), self.reg("r")
            if rng.random() < 0.5:
                t = self.reg("d")
                return guard, f"mov.b64 {t}, {{{x}, {y}}};", put(t, lambda s: s[y] << 32 | s[x])
            t, u = self.reg("h"), self.reg("h")
            return guard, f"mov.b32 {x}, {{{t}, {u}}};", put(x, lambda s: s[u] << 16 | s[t])
        if what == 9:
            x, y = rng.sample(range(COUNT["r"]), 2)
            t = self.reg("d")
            def unpack(s):
                v = s[t]
                s[f"r{x}"], s[f"r{y}"] = v & mask(32), v >> 32
            return guard, f"mov.b64 {{r{x}, r{y}}}, {t};", unpack
        if what == 10:
            hs = rng.sample(range(COUNT["h"]), 4)
            t = self.reg("d")
            if rng.random() < 0.5:
                return guard, f"mov.b64 {t}, {{{', '.join(f'h{i}' for i in hs)}}};", put(t, lambda s: sum(s[f"h{h}"] << 16 * i for i, h in enumerate(hs)))
            def unpack4(s):
                v = s[t]
                for i, h in enumerate(hs):
                    s[f"h{h}"] = v >> 16 * i & 65535
            return guard, f"mov.b64 {{{', '.join(f'h{i}' for i in hs)}}}, {t};", unpack4
        if what == 11:
            to = rng.choice("hrd")
            t = self.reg(to)
            src, of = rng.choice([(kind, "u"), (kind, "s")])
            x = self.reg(src)
            sign = rng.choice("us")
            sat = rng.random() < 0.3
            def convert(s):
                v = s[x] if of == "u" else signed(s[x], bits)
                if sat:
                    low, high = (0, mask(BITS[to])) if sign == "u" else (-(1 << BITS[to] - 1), (1 << BITS[to] - 1) - 1)
                    v = max(low, min(high, v))
                return v & mask(BITS[to])
            can = sat and (BITS[to] < bits or (sign != of and not (sign == "s" and BITS[to] > bits)))
            if sat and not can:
                sat = False
            return guard, f"cvt{'.sat' if sat else ''}.{sign}{BITS[to]}.{of}{bits} {t}, {x};", put(t, convert)
        if what == 12:  # a carry chain: in one piece, all with one guard
            xs, ys = [self.reg("r") for _ in range(3)], [self.reg("r") for _ in range(3)]
            ds = [f"r{i}" for i in rng.sample(range(COUNT["r"]), 3)]
            sub = rng.random() < 0.5
            g = f"@{'!' if guard[1] else ''}{guard[0]} " if guard else ""
            names = ["sub.cc", "subc.cc", "subc"] if sub else ["add.cc", "addc.cc", "addc"]
            text = ("\n    " + g).join(f"{names[i]}.u32 {ds[i]}, {xs[i]}, {ys[i]};" for i in range(3))
            def chain(s):
                carry = 0
                for i in range(3):
                    x, y = s[xs[i]], s[ys[i]]
                    total = x - y - carry if sub else x + y + carry
                    carry = int(total < 0) if sub else total >> 32
                    s[ds[i]] = total & mask(32)
            return guard, text, chain
        if what == 13:
            x = self.reg("r")
            t = self.reg("d")
            wide = rng.choice(["u", "s"])
            ct, c = self.value("d")
            def mad(s):
                p = s[x] * s[y] if wide == "u" else signed(s[x], 32) * signed(s[y], 32)
                return (p + c(s)) & mask(64)
            y = self.reg("r")
            return guard, f"mad.wide.{wide}32 {t}, {x}, {y}, {ct};", put(t, mad)
        if what == 14:  # local memory: a vector of four words, read back in parts
            rs = [self.reg("r") for _ in range(4)]
            place = rng.randrange(4) * 16
            def store(s):
                for i, r in enumerate(rs):
                    for k in range(4):
                        s["local"][place + 4 * i + k] = s[r] >> 8 * k & 255
            return guard, f"st.local.v4.b32 [memory+{place}], {{{', '.join(rs)}}};", store
        if what == 15:
            size = rng.choice([8, 16, 32, 64])
            to = rng.choice([k for k in "hrd" if BITS[k] >= size])
            t = self.reg(to)
            place = rng.randrange(64 // (size // 8)) * (size // 8)
            sign = rng.choice("us")
            def load(s):
                v = sum(s["local"][place + k] << 8 * k for k in range(size // 8))
                return (v if sign == "u" else signed(v, size)) & mask(BITS[to])
            return guard, f"ld.local.{sign}{size} {t}, [memory+{place}];", put(t, load)
        if what == 16:
            x = self.reg("d")
            index = self.reg("r")
            def store1(s):
                at = (s[index] & 7) * 8
                for k in range(8):
                    s["local"][at + k] = s[x] >> 8 * k & 255
            g = f"@{'!' if guard[1] else ''}{guard[0]} " if guard else ""
            return guard, f"and.b32 scratch, {index}, 7;\n    {g}shl.b32 scratch, scratch, 3;\n    {g}cvt.u64.u32 place, scratch;\n    {g}add.u64 place, place, base;\n    {g}st.local.b64 [place], {x};", store1
        if what == 17:
            p, q = self.reg("p"), self.reg("p")
            t = self.reg("p")
            op = rng.choice(["and", "or", "xor"])
            return guard, f"{op}.pred {t}, {p}, {q};", put(t, lambda s: {"and": s[p] & s[q], "or": s[p] | s[q], "xor": s[p] ^ s[q]}[op])
        if what == 18:
            p, q = self.reg("p"), self.reg("p")
            return guard, f"not.pred {p}, {q};", put(p, lambda s: 1 - s[q])
        if what == 19:
            op = rng.choice(["min", "max"])
            of = rng.choice("us")
            def least(s):
                x, y = (a(s) & mask(bits), b(s) & mask(bits)) if of == "u" else (signed(a(s), bits), signed(b(s), bits))
                return (min(x, y) if op == "min" else max(x, y)) & mask(bits)
            return guard, f"{op}.{of}{bits} {d}, {at}, {bt};", put(d, least)
        if what == 20:
            x, y, z = self.reg("r"), self.reg("r"), self.reg("r")
            table = rng.randrange(256)
            def lop(s):
                return sum((table >> ((s[x] >> i & 1) * 4 + (s[y] >> i & 1) * 2 + (s[z] >> i & 1)) & 1) << i for i in range(32))
            t = self.reg("r")
            return guard, f"lop3.b32 {t}, {x}, {y}, {z}, {table};", put(t, lop)
        if what == 21:
            return guard, f"mov.b{bits} {d}, {at};", put(d, lambda s: a(s) & mask(bits))
        if what == 22:
            t, x = self.reg("r"), self.reg("r")
            h = self.reg("h")
            def call(s):
                return (s[x] * 3 + (s[h] if s[x] & 1 else 7)) & mask(32)
            which = rng.choice(["by_param", "by_reg"])
            if which == "by_reg":
                return guard, f"call ({t}), by_reg, ({x}, {h});", put(t, call)
            # What passes parameters cannot have a guard, the call can: every second guarded call is branched around.
            self.slot += 1
            g = f"@{'!' if guard[1] else ''}{guard[0]} " if guard else ""
            around = guard is not None and self.slot % 2 == 0
            before = f"@{'' if guard[1] else '!'}{guard[0]} bra AROUND{self.slot};\n    " if around else ""
            behind = f"\nAROUND{self.slot}:" if around else ""
            take = f"ld.param.b32 scratch, [pr]; }}\n    {g}mov.u32 {t}, scratch;" if guard and not around else f"ld.param.b32 {t}, [pr]; }}"
            text = (f"{before}{{ .param .b32 pr; .param .align 8 .b8 pa[8];\n    st.param.b32 [pa], {x};\n    st.param.b16 [pa+4], {h};\n"
                    f"    {'' if around else g}call (pr), by_param, (pa);\n    {take}{behind}")  # fmt: skip
            return "inside", text, lambda s: put(t, call)(s) if guard is None or bool(s[guard[0]]) != guard[1] else None
        p = self.reg("p")
        return guard, f"slct.u{max(bits, 32)}.s32 {d if bits > 16 else 'r0'}, {at if bits > 16 else 'r1'}, {bt if bits > 16 else 'r2'}, r3;", (
            put(d, lambda s: (a(s) if signed(s["r3"], 32) >= 0 else b(s)) & mask(bits)) if bits > 16 else
            put("r0", lambda s: s["r1"] if signed(s["r3"], 32) >= 0 else s["r2"]))  # fmt: skip


def make(seed):
    maker = Maker(seed)
    rng = maker.rng
    blocks = []
    n = rng.randint(3, 12)
    for index in range(n):
        block = Block()
        block.code = [maker.instruction() for _ in range(rng.randint(1, 7))]
        far = lambda: rng.choice([min(n, index + rng.randint(1, 4)), rng.randrange(n) if rng.random() < 0.4 else index + 1])
        kind = rng.randrange(8)
        if kind < 4:
            block.end = ("if", maker.reg("p"), rng.random() < 0.5, far())
        elif kind == 4:
            block.end = ("goto", far())
        elif kind == 5:
            block.end = ("table", maker.reg("r"), [far() for _ in range(4)])
        elif kind == 6 and index > 1:
            block.end = ("exit", maker.reg("p"))
        else:
            block.end = ("next",)
        blocks.append(block)
    return blocks


def words_of(blocks, lane):
    s = {f"h{i}": (lane * 257 + i * 31) & 65535 for i in range(COUNT["h"])}
    s.update({f"r{i}": (lane * 2654435761 + i * 977) & mask(32) for i in range(COUNT["r"])})
    s.update({f"d{i}": (lane * 0x9E3779B97F4A7C15 + i) & mask(64) for i in range(COUNT["d"])})
    s.update({f"p{i}": lane >> i & 1 for i in range(COUNT["p"])})
    s["local"] = [0] * 64
    at, fuel = 0, FUEL
    while at < len(blocks):
        block = blocks[at]
        for guard, _, do in block.code:
            if guard in (None, "inside") or bool(s[guard[0]]) != guard[1]:
                do(s)
        fuel -= 1
        if fuel == 0:
            break
        end, at = block.end, at + 1
        if end[0] == "if" and bool(s[end[1]]) != end[2]:
            at = end[3]
        elif end[0] == "goto":
            at = end[1]
        elif end[0] == "table":
            at = end[2][s[end[1]] & 3]
        elif end[0] == "exit" and s[end[1]]:
            break
    total = 0
    for kind in "hrdp":
        for i in range(COUNT[kind]):
            total = ((total ^ s[f"{kind}{i}"]) * 0x9E3779B97F4A7C15) & mask(64)
            total ^= total >> 29
    for i in range(8):
        total = ((total ^ sum(s["local"][8 * i + k] << 8 * k for k in range(8))) * 0x9E3779B97F4A7C15) & mask(64)
        total ^= total >> 29
    return [total & mask(32), total >> 32]


def program(seed):
    blocks = make(seed)
    lines = [".version 8.0", ".target sm_90", ".address_size 64",
             ".func (.param .b32 r) by_param(.param .align 8 .b8 a[8])\n{\n    .reg .b32 x, y, z;\n    .reg .b16 h;\n    .reg .pred p;\n"
             "    ld.param.b32 x, [a];\n    ld.param.b16 h, [a+4];\n    cvt.u32.u16 y, h;\n    and.b32 z, x, 1;\n    setp.ne.u32 p, z, 0;\n"
             "    @p bra ODD;\n    mov.u32 y, 7;\nODD:\n    mad.lo.u32 x, x, 3, y;\n    st.param.b32 [r], x;\n    ret;\n}",
             ".func (.reg .b32 r) by_reg(.reg .b32 x, .reg .b16 h)\n{\n    .reg .b32 y, z;\n    .reg .pred p;\n    cvt.u32.u16 y, h;\n"
             "    and.b32 z, x, 1;\n    setp.ne.u32 p, z, 0;\n    @!p mov.u32 y, 7;\n    mad.lo.u32 r, x, 3, y;\n    ret;\n}",
             ".visible .entry run(.param .u64 out, .param .u32 seed)", "{"]  # fmt: skip
    for kind in "hrd":
        lines.append(f"    .reg .b{BITS[kind]} {kind}<{COUNT[kind]}>;")
    lines += [f"    .reg .pred p<{COUNT['p']}>;", "    .reg .pred spent;", "    .reg .b32 lane, fuel, scratch, half;", "    .reg .b64 to, wide, total, shifted, place, base;",
              "    .local .align 16 .b8 memory[64];", "    mov.u32 lane, %tid.x;", f"    mov.u32 fuel, {FUEL};", "    mov.u64 base, memory;"]
    for i in range(0, 64, 8):
        lines.append(f"    st.local.b64 [memory+{i}], 0;")
    for i in range(COUNT["h"]):
        lines.append(f"    mad.lo.u32 scratch, lane, 257, {i * 31};\n    cvt.u16.u32 h{i}, scratch;")
    for i in range(COUNT["r"]):
        lines.append(f"    mad.lo.u32 r{i}, lane, 2654435761, {i * 977};")
    lines.append("    cvt.u64.u32 wide, lane;")
    for i in range(COUNT["d"]):
        lines.append(f"    mad.lo.u64 d{i}, wide, {0x9E3779B97F4A7C15}, {i};")
    for i in range(COUNT["p"]):
        lines.append(f"    shr.u32 scratch, lane, {i};\n    and.b32 scratch, scratch, 1;\n    setp.ne.u32 p{i}, scratch, 0;")
    for index, block in enumerate(blocks):
        lines.append(f"B{index}:")
        if block.end[0] == "table":
            lines.append(f"T{index}: .branchtargets {', '.join(f'B{t}' if t < len(blocks) else 'DONE' for t in block.end[2])};")
        for guard, text, _ in block.code:
            g = "" if guard in (None, "inside") else f"@{'!' if guard[1] else ''}{guard[0]} "
            lines.append(f"    {g}{text}")
        lines.append("    sub.u32 fuel, fuel, 1;\n    setp.eq.u32 spent, fuel, 0;\n    @spent bra DONE;")
        target = lambda t: f"B{t}" if t < len(blocks) else "DONE"
        if block.end[0] == "if":
            lines.append(f"    @{'!' if block.end[2] else ''}{block.end[1]} bra {target(block.end[3])};")
        elif block.end[0] == "goto":
            lines.append(f"    bra {target(block.end[1])};")
        elif block.end[0] == "table":
            lines.append(f"    and.b32 scratch, {block.end[1]}, 3;\n    brx.idx scratch, T{index};")
        elif block.end[0] == "exit":
            lines.append(f"    @{block.end[1]} bra DONE;")
    lines.append("DONE:\n    mov.u64 total, 0;")
    def mix(value):
        lines.append(f"    xor.b64 total, total, {value};\n    mul.lo.u64 total, total, {0x9E3779B97F4A7C15};\n    shr.u64 shifted, total, 29;\n    xor.b64 total, total, shifted;")
    for kind in "hrdp":
        for i in range(COUNT[kind]):
            if kind == "h":
                lines.append(f"    cvt.u64.u16 wide, h{i};")
            elif kind == "r":
                lines.append(f"    cvt.u64.u32 wide, r{i};")
            elif kind == "d":
                lines.append(f"    mov.u64 wide, d{i};")
            else:
                lines.append(f"    selp.u64 wide, 1, 0, p{i};")
            mix("wide")
    for i in range(8):
        lines.append(f"    ld.local.b64 wide, [memory+{8 * i}];")
        mix("wide")
    lines.append("    ld.param.u64 to, [out];\n    mul.wide.u32 wide, lane, 8;\n    add.u64 to, to, wide;\n    st.global.u64 [to], total;\n    ret;\n}")
    words = [word for lane in range(64) for word in words_of(blocks, lane)]
    return "\n".join(lines) + "\n", words
