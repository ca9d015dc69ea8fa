"""Warp-level collectives in divergent code: ifs, loops that lanes leave at different times, functions and recursion; each collective names
exactly the lanes that are there. Two warps, shared memory, atomics whose order does not matter.

The reference is not a compiler's: the program is a tree of statements, written as CUDA C++ and walked here with sets of lanes.
"""
import random

M = 0xFFFFFFFF
VARS = ["x", "y", "z", "w"]


def popc(x):
    return bin(x).count("1")


class Expression:
    """Of 32-bit variables: text, and value in one lane."""

    def __init__(self, text, value):
        self.text, self.value = text, value


def expression(rng, depth):
    if depth == 0 or rng.random() < 0.2:
        kind = rng.randrange(4)
        if kind == 0:
            n = rng.choice([rng.randrange(64), rng.getrandbits(32)])
            return Expression(f"{n}u", lambda lane, v, n=n: n)
        if kind == 1:
            return Expression("lane", lambda lane, v: lane)
        name = rng.choice(VARS)
        return Expression(name, lambda lane, v, name=name: v[name][lane])
    a, b = expression(rng, depth - 1), expression(rng, depth - 1)
    s = rng.randrange(1, 31)
    return rng.choice([
        Expression(f"({a.text} + {b.text})", lambda l, v: (a.value(l, v) + b.value(l, v)) & M),
        Expression(f"({a.text} - {b.text})", lambda l, v: (a.value(l, v) - b.value(l, v)) & M),
        Expression(f"({a.text} * {b.text})", lambda l, v: (a.value(l, v) * b.value(l, v)) & M),
        Expression(f"({a.text} ^ {b.text})", lambda l, v: a.value(l, v) ^ b.value(l, v)),
        Expression(f"({a.text} | {b.text})", lambda l, v: a.value(l, v) | b.value(l, v)),
        Expression(f"({a.text} >> {s})", lambda l, v: a.value(l, v) >> s),
        Expression(f"({a.text} << {s} | {a.text} >> {32 - s})", lambda l, v: ((a.value(l, v) << s) | (a.value(l, v) >> (32 - s))) & M),
        Expression(f"({a.text} < {b.text} ? {a.text} : {b.text})", lambda l, v: min(a.value(l, v), b.value(l, v))),
    ])  # fmt: skip


def condition(rng):
    a = expression(rng, 2)
    kind = rng.randrange(4)
    bit = rng.randrange(5)
    if kind == 0:
        return Expression(f"(lane >> {bit} & 1)", lambda l, v: l >> bit & 1)
    if kind == 1:
        n = rng.randrange(1, 31)
        return Expression(f"(lane < {n})", lambda l, v: int(l < n))
    return Expression(f"({a.text} >> {bit} & 1)", lambda l, v: a.value(l, v) >> bit & 1)


def lanes_of(mask):
    return [i for i in range(32) if mask >> i & 1]


# --- collectives: (text of the call with m, a, b; function of mask, values by lane → results by lane)
def nth(mask, n):
    lanes = lanes_of(mask)
    return lanes[n % len(lanes)]


def signed(x):
    return x - (1 << 32) if x >> 31 else x


def shuffle(kind, width, mask, values, by):
    out = {}
    for lane in lanes_of(mask):
        base, n = lane & ~(width - 1), by[lane] & 31
        source = {"xor": lane ^ n, "up": lane - n, "down": lane + n}[kind]
        inside = source >= base if kind == "up" else source < base + width
        if kind == "xor" and not inside:
            source = lane
        if not inside:
            source = lane
        out[lane] = values[source] if mask >> source & 1 else 12345
    return out


def collective(rng):
    kind = rng.randrange(14)
    width = rng.choice([32, 32, 8, 16, 4])
    if kind < 3:
        name = ["xor", "up", "down"][kind]
        by = rng.randrange(0, 12)
        return f"shuffle_{name}(m, {{a}}, {by}, {width}, lane)", lambda m, a, b: shuffle(name, width, m, a, {i: by for i in range(32)})
    if kind == 3:
        return "shuffle_nth(m, {a}, {b})", lambda m, a, b: {i: a[nth(m, b[i] & 31)] for i in lanes_of(m)}
    if kind == 4:
        return "__ballot_sync(m, {a} & 1)", lambda m, a, b: {i: sum((a[k] & 1) << k for k in lanes_of(m)) for i in lanes_of(m)}
    if kind == 5:
        return "__any_sync(m, {a} & 4)", lambda m, a, b: {i: int(any(a[k] & 4 for k in lanes_of(m))) for i in lanes_of(m)}
    if kind == 6:
        return "__all_sync(m, {a} & 4)", lambda m, a, b: {i: int(all(a[k] & 4 for k in lanes_of(m))) for i in lanes_of(m)}
    if kind == 7:
        return "__match_any_sync(m, {a} & 3)", lambda m, a, b: {i: sum(1 << k for k in lanes_of(m) if a[k] & 3 == a[i] & 3) for i in lanes_of(m)}
    if kind == 8:
        return "match_all(m, {a} & 64)", lambda m, a, b: {i: (m + 1) & M if len({a[k] & 64 for k in lanes_of(m)}) == 1 else 0 for i in lanes_of(m)}
    if kind == 9:
        name, make = rng.choice([("add", lambda s: sum(s) & M), ("min", min), ("max", max)])
        return f"__reduce_{name}_sync(m, {{a}})", lambda m, a, b: {i: make([a[k] for k in lanes_of(m)]) for i in lanes_of(m)}
    if kind == 10:
        name, make = rng.choice([("min", min), ("max", max)])
        return f"(unsigned)__reduce_{name}_sync(m, (int){{a}})", lambda m, a, b: {i: make([signed(a[k]) for k in lanes_of(m)]) & M for i in lanes_of(m)}
    if kind == 11:
        def fold(name, values):
            result = values[0]
            for value in values[1:]:
                result = result & value if name == "and" else result | value if name == "or" else result ^ value
            return result
        name = rng.choice(["and", "or", "xor"])
        return f"__reduce_{name}_sync(m, {{a}})", lambda m, a, b: {i: fold(name, [a[k] for k in lanes_of(m)]) for i in lanes_of(m)}
    if kind == 12:
        return "through_shared(m, {a}, {b}, exchange, lane)", lambda m, a, b: {i: a[nth(m, b[i] & 31)] for i in lanes_of(m)}
    return "shuffle_wide(m, {a}, {b})", lambda m, a, b: {i: a[nth(m, b[i] & 31)] ^ (a[nth(m, b[i] & 31)] * 3 & M) for i in lanes_of(m)}


class Make:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.names = 0

    def body(self, depth, in_loop=False):
        return [self.statement(depth, in_loop) for _ in range(self.rng.randint(1, 4))]

    def statement(self, depth, in_loop):
        rng = self.rng
        kind = rng.randrange(11)
        if kind < 2 or depth == 0 and kind > 6:
            return ("set", rng.choice(VARS), expression(rng, 2))
        if kind < 6:
            return ("collective", rng.choice(VARS), *collective(rng), expression(rng, 1), expression(rng, 1))
        if kind == 6:
            counter = rng.randrange(8)
            what = ["add", "xor", "min", "max", "inc", "add", "xor", "min"][counter]  # one kind each: their order is open
            return ("atomic", what, counter, expression(rng, 1))
        if kind == 7:
            return ("if", condition(rng), self.body(depth - 1), self.body(depth - 1) if rng.random() < 0.6 else [])
        if kind == 8:
            return ("loop", expression(rng, 1), rng.randint(2, 6), self.body(depth - 1, True))
        if kind == 9 and in_loop:
            return ("break", condition(rng))
        return ("call", rng.randrange(2), expression(rng, 1))


class Write:
    """Statements as text. `m` is the mask of the lanes that are here."""

    def __init__(self):
        self.names = 0

    def fresh(self):
        self.names += 1
        return self.names

    def body(self, body, pad):
        return "".join(self.statement(s, pad) for s in body)

    def statement(self, s, pad):
        n = self.fresh()
        if s[0] == "set":
            return f"{pad}{s[1]} = {s[2].text};\n"
        if s[0] == "collective":
            return f"{pad}{s[1]} = {s[2].format(a=s[4].text, b=s[5].text)};\n"
        if s[0] == "atomic":
            call = {"add": "atomicAdd", "xor": "atomicXor", "min": "atomicMin", "max": "atomicMax", "inc": "atomicAdd"}[s[1]]
            return f"{pad}{call}(&counters[{s[2]}], {'1u' if s[1] == 'inc' else s[3].text});\n"
        if s[0] == "if":
            text = f"{pad}unsigned t{n} = {s[1].text};\n{pad}unsigned b{n} = __ballot_sync(m, t{n});\n{pad}if (t{n}) {{\n{pad}    unsigned o{n} = m;\n"
            text += f"{pad}    m = b{n};\n{self.body(s[2], pad + '    ')}{pad}    m = o{n};\n{pad}}} else {{\n"
            text += f"{pad}    unsigned o{n} = m;\n{pad}    m = m & ~b{n};\n{self.body(s[3], pad + '    ')}{pad}    m = o{n};\n{pad}}}\n"
            return text
        if s[0] == "loop":
            text = f"{pad}unsigned o{n} = m, n{n} = {s[1].text} % {s[2]};\n{pad}for (unsigned i{n} = 0;; i{n}++) {{\n"
            text += f"{pad}    unsigned g{n} = __ballot_sync(m, i{n} < n{n});\n{pad}    if (i{n} >= n{n})\n{pad}        break;\n{pad}    m = g{n};\n"
            text += f"{pad}    x ^= i{n} * 7;\n{self.body(s[3], pad + '    ')}{pad}}}\n{pad}m = o{n};\n"
            return text
        if s[0] == "break":
            return f"{pad}unsigned t{n} = {s[1].text};\n{pad}unsigned b{n} = __ballot_sync(m, t{n});\n{pad}if (t{n})\n{pad}    break;\n{pad}m = m & ~b{n};\n"
        return f"{pad}y += helper{s[1]}(m, {s[2].text}, lane, exchange);\n"


class Run:
    """Statements by sets of lanes; returns the lanes that go on."""

    def __init__(self, counters):
        self.counters = counters

    def body(self, body, mask, v):
        for s in body:
            if mask:
                mask = self.statement(s, mask, v)
        return mask

    def statement(self, s, mask, v):
        lanes = lanes_of(mask)
        if s[0] == "set":
            new = {i: s[2].value(i, v) for i in lanes}
            for i in lanes:
                v[s[1]][i] = new[i]
        elif s[0] == "collective":
            a, b = {i: s[4].value(i, v) for i in lanes}, {i: s[5].value(i, v) for i in lanes}
            new = s[3](mask, a, b)
            for i in lanes:
                v[s[1]][i] = new[i]
        elif s[0] == "atomic":
            for i in lanes:
                value, old = s[3].value(i, v), self.counters[s[2]]
                self.counters[s[2]] = {"add": (old + value) & M, "xor": old ^ value, "min": min(old, value), "max": max(old, value),
                                       "inc": (old + 1) & M}[s[1]]  # fmt: skip
        elif s[0] == "if":
            yes = sum(1 << i for i in lanes if s[1].value(i, v))
            return self.body(s[2], yes, v) | self.body(s[3], mask & ~yes, v)
        elif s[0] == "loop":
            count = {i: s[1].value(i, v) % s[2] for i in lanes}
            here, i = mask, 0
            while here:
                here &= sum(1 << k for k in lanes if i < count[k])
                for k in lanes_of(here):
                    v["x"][k] ^= i * 7
                here = self.body(s[3], here, v)
                i += 1
        elif s[0] == "break":
            return mask & ~sum(1 << i for i in lanes if s[1].value(i, v))
        else:
            a = {i: s[2].value(i, v) for i in lanes}
            new = helper(s[1], mask, a)
            for i in lanes:
                v["y"][i] = (v["y"][i] + new[i]) & M
        return mask


def helper(which, mask, a):
    """helper0: sum over the lanes that are here, and a loop of its own; helper1: recursion by halves of the mask."""
    lanes = lanes_of(mask)
    if which == 0:
        total = sum(a[i] for i in lanes) & M
        odd = [i for i in lanes if a[i] & 1]
        return {i: total ^ (max(a[k] for k in odd) if i in odd else 5) for i in lanes}
    def halves(part, depth):
        if depth == 0:
            low = min(a[i] for i in part)
            return {i: low for i in part}
        one, other = [i for i in part if a[i] >> depth & 1], [i for i in part if not a[i] >> depth & 1]
        out = {}
        for side in (one, other):
            if side:
                out.update(halves(side, depth - 1))
        first = {i: out[part[0]] for i in part}
        return {i: (out[i] * 3 + first[i]) & M for i in part}
    return halves(lanes, 3)


HEAD = """#include "runtime.h"
#define LANES 32

static __device__ unsigned nth_of(unsigned m, unsigned n)
{
    n %= __popc(m);
    for (unsigned i = 0;; i++)
        if (m >> i & 1 && n-- == 0)
            return i;
}
static __device__ unsigned shuffle_xor(unsigned m, unsigned a, unsigned by, int width, unsigned lane)
{
    unsigned source = (lane ^ by) < (lane & ~(width - 1)) + width ? lane ^ by : lane;
    unsigned r = __shfl_xor_sync(m, a, by, width);
    return m >> source & 1 ? r : 12345;
}
static __device__ unsigned shuffle_up(unsigned m, unsigned a, unsigned by, int width, unsigned lane)
{
    unsigned source = (int)(lane - by) >= (int)(lane & ~(width - 1)) ? lane - by : lane;
    unsigned r = __shfl_up_sync(m, a, by, width);
    return m >> source & 1 ? r : 12345;
}
static __device__ unsigned shuffle_down(unsigned m, unsigned a, unsigned by, int width, unsigned lane)
{
    unsigned source = lane + by < (lane & ~(width - 1)) + width ? lane + by : lane;
    unsigned r = __shfl_down_sync(m, a, by, width);
    return m >> source & 1 ? r : 12345;
}
static __device__ unsigned shuffle_nth(unsigned m, unsigned a, unsigned n)
{
    return __shfl_sync(m, a, nth_of(m, n & 31));
}
static __device__ unsigned shuffle_wide(unsigned m, unsigned a, unsigned n)
{
    unsigned long long wide = (unsigned long long)(a * 3) << 32 | a;
    wide = __shfl_sync(m, wide, nth_of(m, n & 31));
    return (unsigned)(wide >> 32) ^ (unsigned)wide;
}
static __device__ unsigned match_all(unsigned m, unsigned a)
{
    int same;
    unsigned r = __match_all_sync(m, a, &same);
    return r + (same ? 1 : 0);
}
static __device__ __noinline__ unsigned through_shared(unsigned m, unsigned a, unsigned n, volatile unsigned *exchange, unsigned lane)
{
    exchange[lane] = a;
    __syncwarp(m);
    unsigned r = exchange[nth_of(m, n & 31)];
    __syncwarp(m);
    return r;
}
static __device__ __noinline__ unsigned helper0(unsigned m, unsigned a, unsigned, volatile unsigned *)
{
    unsigned total = __reduce_add_sync(m, a), odd = __ballot_sync(m, a & 1);
    if (a & 1)
        return total ^ __reduce_max_sync(odd, a);
    return total ^ 5;
}
static __device__ __noinline__ unsigned halves(unsigned m, unsigned a, unsigned depth)
{
    if (depth == 0)
        return __reduce_min_sync(m, a);
    unsigned one = __ballot_sync(m, a >> depth & 1), r;
    if (a >> depth & 1)
        r = halves(one, a, depth - 1);
    else
        r = halves(m & ~one, a, depth - 1);
    return r * 3 + __shfl_sync(m, r, __ffs(m) - 1);
}
static __device__ unsigned helper1(unsigned m, unsigned a, unsigned, volatile unsigned *)
{
    return halves(m, a, 3);
}
"""


def program(seed):
    make = Make(seed)
    phases = [make.body(3) for _ in range(make.rng.randint(1, 3))]
    write = Write()
    text = HEAD + """
extern "C" __global__ void run(unsigned *out, unsigned seed)
{
    __shared__ unsigned counters[8], exchanges[64];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    volatile unsigned *exchange = exchanges + 32 * warp;
    unsigned x = lane * 2654435761u + warp, y = lane ^ warp * 99, z = seed + 3, w = lane * lane;
    if (threadIdx.x < 8)
        counters[threadIdx.x] = 1000;
    __syncthreads();
"""
    for phase in phases:
        text += "    {\n        unsigned m = 0xffffffffu;\n" + write.body(phase, "        ") + "    }\n    __syncthreads();\n    z ^= counters[lane & 7];\n    __syncthreads();\n"
    text += "    out[2 * threadIdx.x] = x ^ y * 31;\n    out[2 * threadIdx.x + 1] = z ^ w * 31;\n}\n"
    counters = [1000] * 8
    warps = [{"x": [(i * 2654435761 + k) & M for i in range(32)], "y": [i ^ (k * 99) for i in range(32)], "z": [3] * 32,
              "w": [i * i for i in range(32)]} for k in range(2)]  # fmt: skip
    for phase in phases:
        for v in warps:
            Run(counters).body(phase, M, v)
        for v in warps:
            for i in range(32):
                v["z"][i] ^= counters[i & 7]
    words = []
    for v in warps:
        for i in range(32):
            words += [(v["x"][i] ^ (v["y"][i] * 31)) & M, (v["z"][i] ^ (v["w"][i] * 31)) & M]
    return text, words
