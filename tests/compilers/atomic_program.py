"""Atomics of 16 to 64 bits and of floats, in shared and global memory, in loops that lanes leave at different times; all whose
order is open commute. The last thread mixes what memory holds after the barrier, so that the host may run one thread after
the other.
"""
import random

HEAD = """#include "runtime.h"
#if defined(__CUDACC_RTC__)
#define SHARED __shared__
#define GLOBAL static __device__
#define FUNCTION static __device__
#define BARRIER() __syncthreads()
FUNCTION void add_pair(unsigned *at, unsigned value)
{
    asm volatile("{ .reg .b64 g; cvt.u64.u64 g, %0; red.add.noftz.f16x2 [g], %1; }" ::"l"(at), "r"(value) : "memory");
}
#else
#define SHARED static
#define GLOBAL static
#define FUNCTION static
#define BARRIER() (void)0
template <typename T> T swap(T *at, T value)
{
    T old = *at;
    *at = value;
    return old;
}
template <typename T, typename V> T atomicAdd(T *at, V v) { return swap(at, (T)(*at + (T)v)); }
template <typename T, typename V> T atomicSub(T *at, V v) { return swap(at, (T)(*at - (T)v)); }
template <typename T, typename V> T atomicMin(T *at, V v) { return swap(at, *at < (T)v ? *at : (T)v); }
template <typename T, typename V> T atomicMax(T *at, V v) { return swap(at, *at > (T)v ? *at : (T)v); }
template <typename T, typename V> T atomicAnd(T *at, V v) { return swap(at, (T)(*at & (T)v)); }
template <typename T, typename V> T atomicOr(T *at, V v) { return swap(at, (T)(*at | (T)v)); }
template <typename T, typename V> T atomicXor(T *at, V v) { return swap(at, (T)(*at ^ (T)v)); }
template <typename T, typename V> T atomicExch(T *at, V v) { return swap(at, (T)v); }
template <typename T, typename V, typename W> T atomicCAS(T *at, V is, W v) { return swap(at, *at == (T)is ? (T)v : *at); }
static unsigned atomicInc(unsigned *at, unsigned v) { return swap(at, *at >= v ? 0 : *at + 1); }
static unsigned atomicDec(unsigned *at, unsigned v) { return swap(at, *at == 0 || *at > v ? v : *at - 1); }
/* Two small whole numbers as halves: their sums are exact below 2048. */
static unsigned half_of(unsigned n)
{
    unsigned e = 0;
    while (n >> e > 1)
        e++;
    return n ? (e + 15) << 10 | ((n << (10 - e)) & 1023) : 0;
}
static unsigned whole_of(unsigned h)
{
    return h ? (1024 + (h & 1023)) >> (25 - (h >> 10)) : 0;
}
static void add_pair(unsigned *at, unsigned value)
{
    *at = half_of(whole_of(*at & 65535) + whole_of(value & 65535)) | half_of(whole_of(*at >> 16) + whole_of(value >> 16)) << 16;
}
#endif
"""
KINDS = [("unsigned", ["Add", "Sub", "Min", "Max", "And", "Or", "Xor", "Inc", "Dec", "mul", "ticket"]), ("int", ["Add", "Sub", "Min", "Max", "And", "Or", "Xor"]),
         ("unsigned long long", ["Add", "Min", "Max", "And", "Or", "Xor", "mul", "ticket"]), ("long long", ["Min", "Max"]), ("float", ["Add"]), ("double", ["Add"]),
         ("unsigned short", ["mul"]), ("pair", ["pair"]), ("unsigned", ["Exch", "CAS"])]  # fmt: skip


def program(seed):
    rng = random.Random(seed)
    cells = []
    for i in range(rng.randint(4, 10)):
        kind, ops = rng.choice(KINDS)
        cells.append((f"cell{i}", kind, rng.choice(ops), rng.choice(["SHARED", "GLOBAL"]), rng.choice([1, 3, 8, 64])))
    text = HEAD
    place = {}
    for name, kind, op, where, count in cells:
        of = "unsigned" if kind == "pair" else kind
        count = 64 if op in ("Exch", "CAS") else count  # one a thread
        place[name] = (of, count)
        if where == "GLOBAL":
            text += f"GLOBAL {of} {name}[{count}];\n"
    body = ""

    def update(depth):
        name, kind, op, _, _ = rng.choice(cells)
        count = place[name][1]
        at = f"&{name}[{'thread' if count == 64 else f'(bits >> {rng.randrange(20)}) % {count}'}]"
        n = rng.randrange(1 << 30)
        value = f"(bits >> {rng.randrange(24)} & {rng.choice([1, 7, 255])})"
        if op in ("Add", "Sub", "Min", "Max", "And", "Or", "Xor"):
            wide = "~" if op == "And" else ""
            return f"atomic{op}({at}, ({kind}){wide}{value});"
        if op in ("Inc", "Dec"):
            return f"atomic{op}({at}, 17u);"
        if op == "pair":
            return f"add_pair({at}, {rng.choice(['0x3c004000u', '0x40003c00u', '0x3c003c00u', '0x00003c00u'])});"
        if op == "Exch":
            return f"bits += atomicExch({at}, bits);"
        if op == "CAS":
            return f"bits += atomicCAS({at}, 0u, bits) * 3;"
        if op == "ticket":
            return f"{{ {kind} t{n} = atomicAdd({at}, ({kind})1); atomicAdd(&tickets, (unsigned long long)t{n}); }}"
        return (f"{{ {kind} o{n} = *(volatile {kind} *)({at}), s{n}; {kind} *a{n} = {at}; do {{ s{n} = o{n}; "
                f"o{n} = atomicCAS(a{n}, s{n}, ({kind})(s{n} * ({kind})({value} * 2 + 1))); }} while (o{n} != s{n}); }}")  # fmt: skip

    def statement(depth):
        kind = rng.randrange(6)
        if depth == 0 or kind < 3:
            return update(depth) + f" bits = bits * 1664525u + {rng.getrandbits(20)};"
        n = rng.randrange(1 << 30)
        inner = " ".join(statement(depth - 1) for _ in range(rng.randint(1, 3)))
        if kind < 5:
            return f"for (unsigned i{n} = 0; i{n} < (bits >> 9 & 3); i{n}++) {{ {inner} bits ^= i{n} << 5; if ((bits & 31) == {rng.randrange(32)}) break; }}"
        return f"if (bits & {1 << rng.randrange(8)}) {{ {inner} }} else {{ {statement(depth - 1)} }}"

    body = "\n    ".join(statement(3) for _ in range(rng.randint(3, 8)))
    shared = "".join(f"    SHARED {place[c[0]][0]} {c[0]}[{place[c[0]][1]}];\n" for c in cells if c[3] == "SHARED")
    clear = "".join(f"        for (int i = 0; i < {place[c[0]][1]}; i++)\n            {c[0]}[i] = {1 if c[2] == 'mul' else 0};\n" for c in cells)
    mixes = ""
    for name, *_ in cells:
        of, count = place[name]
        how = {"float": "mix_float(&sum, %s)", "double": "mix_double(&sum, %s)"}.get(of, "mix(&sum, (uint64_t)%s)") % f"{name}[i]"
        mixes += f"        for (int i = 0; i < {count}; i++)\n            {how};\n"
    return text + f"""
GLOBAL unsigned long long tickets;
ENTRY run(unsigned *out, unsigned seed)
{{
    const unsigned thread = THREAD;
{shared}    unsigned bits = (thread + seed) * 2654435761u + 99;
    if (thread == 0) {{
        tickets = 0;
{clear}    }}
    BARRIER();
    {body}
    out[2 * thread + 1] = bits;
    BARRIER();
    if (thread == 63) {{
        struct checksum sum = {{tickets}};
{mixes}        out[126] = (unsigned)sum.state ^ (unsigned)(sum.state >> 32);
    }}
}}
"""


FORMATS = [("%d", "(int)bits"), ("%u", "bits"), ("%x", "bits"), ("%#X", "bits"), ("%o", "bits"), ("%+d", "(int)(bits >> 9)"), ("%-9d|", "(int)(bits >> 12)"),
           ("%09d", "(int)(bits >> 15)"), ("%lld", "(long long)bits * -7777777"), ("%llu", "(unsigned long long)bits << 29"), ("%#llx", "(unsigned long long)bits * bits"),
           ("%f", "(double)(int)bits / 7"), ("%.3f", "(float)bits * 0.001f"), ("%e", "(double)bits * 1e40"), ("%g", "(double)bits / 3e9"), ("%10.2e|", "(double)bits"),
           ("%c", "(char)('a' + bits % 26)"), ("%s", '"text"'), ("%-8s|", '"left"'), ("%.2s", '"cut"'), ("%%", None), ("%hd", "(short)bits"), ("%hhu", "(unsigned char)bits"),
           ("%ld", "(long)bits * -3"), ("%*d", "(int)(bits % 12), (int)(bits >> 20)"), ("%.*f", "(int)(bits % 6), (double)bits / 1e5"), ("% d", "(int)(bits >> 3)"),
           ("%5c|", "(char)('A' + bits % 26)"), ("%a", "(double)(bits % 1000) / 8"), ("%i", "-(int)(bits >> 8)"), ("%G", "(double)bits * 1e-12")]  # fmt: skip


def printing(seed):
    """printf of one thread: what is printed is part of the words."""
    rng = random.Random(seed)
    body = ""
    for _ in range(rng.randint(4, 12)):
        chosen = [rng.choice(FORMATS) for _ in range(rng.randint(1, 7))]
        args = "".join(", " + arg for _, arg in chosen if arg)
        body += f'    printf("{" ".join(form for form, _ in chosen)}\\n"{args});\n    bits = bits * 1664525u + 1013904223u;\n'
        if rng.random() < 0.3:
            body += "    if (bits & 1)\n        printf(\"odd %u\\n\", bits);\n"
    return f"""#include "runtime.h"
#ifndef __CUDACC_RTC__
extern "C" int printf(const char *, ...);
#endif
ENTRY run(unsigned *out, unsigned seed)
{{
    unsigned bits = seed + {rng.getrandbits(32)}u;
{body}    out[0] = bits;
    out[1] = 1;
}}
"""
