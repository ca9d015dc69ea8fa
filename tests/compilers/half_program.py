"""Arithmetic of f16, bf16 and their pairs, with CUDA's own headers on both sides: they define each operation for the host too,
exactly. Conversions, comparisons, select by sign, loops with data-dependent trips; atomics of halves in shared memory.

Sums and products are the headers' _rn functions: add, sub and mul without .rn may become one fused operation (PTX ISA 9.0,
9.7.4.1 "add"). ptxas 13.0 makes them one; of twelve programs without _rn four left other words on an H200 (2026-12-01), as
many and from the same first one on as with fma in place of a mul and the add or sub behind it. `loose` leaves the _rn away.
"""
import random


class Maker:
    def __init__(self, rng, kind, division=True, loose=False):
        self.rng, self.kind, self.rounds = rng, kind, "" if loose else "_rn"
        self.division = "div" if division else f"mul{self.rounds}"
        self.one, self.two = ("__half", "__half2") if kind == "half" else ("__nv_bfloat16", "__nv_bfloat162")
        self.to, self.back = ("__float2half_rn", "__half2float") if kind == "half" else ("__float2bfloat16_rn", "__bfloat162float")

    def scalar(self, depth):
        rng = self.rng
        if depth == 0 or rng.random() < 0.15:
            return rng.choice(["p", "q", "r", f"{self.to}({rng.choice(['1.5f', '-0.3f', '70000.0f', '6e-8f', '-2.0f', '0.1f', '3e-5f'])})",
                               f"{self.to}((float)(int)(bits >> {rng.randrange(20)} & 4095) - 2000.0f)"])  # fmt: skip
        a, b = self.scalar(depth - 1), self.scalar(depth - 1)
        what = rng.randrange(9)
        if what < 4:
            plain = [f"{name}{self.rounds}" for name in ("add", "sub", "mul")]
            return f"__h{[*plain, self.division][what]}({a}, {b})"
        if what == 4:
            return f"__h{rng.choice(['min', 'max'])}({a}, {b})"
        if what == 5:
            return f"(__h{rng.choice(['lt', 'gt', 'le', 'ge', 'eq', 'ne', 'ltu', 'gtu'])}({a}, {b}) ? {a} : {b})"
        if what == 6:
            return f"__hneg({a})"
        if what == 7:
            return f"{self.to}({self.back}({a}) * {self.back}({b}) + 0.25f)"
        return f"__habs({a})"

    def pair(self, depth):
        rng = self.rng
        low = "__low2half" if self.kind == "half" else "__low2bfloat16"
        high = "__high2half" if self.kind == "half" else "__high2bfloat16"
        make = "__halves2half2" if self.kind == "half" else "__halves2bfloat162"
        if depth == 0 or rng.random() < 0.15:
            return rng.choice(["P", "Q", f"{make}({self.scalar(1)}, {self.scalar(1)})"])
        a, b = self.pair(depth - 1), self.pair(depth - 1)
        what = rng.randrange(8)
        if what < 3:
            return f"__h{['add2', 'sub2', 'mul2'][what]}{self.rounds}({a}, {b})"
        if what == 3:
            return f"__h{rng.choice(['min2', 'max2'])}({a}, {b})"
        if what == 4:
            return f"{make}({high}({a}), {low}({b}))"
        if what == 5:
            return f"__hneg2({a})"
        if what == 6:
            return f"__h{rng.choice(['lt2', 'ge2', 'eq2', 'ne2', 'gtu2'])}({a}, {b})"
        return f"__habs2({a})"

    def statement(self, depth):
        rng = self.rng
        kind = rng.randrange(8) if depth else rng.randrange(4)
        if kind < 2:
            return f"{rng.choice('pqr')} = {self.scalar(3)};"
        if kind < 4:
            return f"{rng.choice('PQ')} = {self.pair(3)};"
        if kind == 4:
            return f"bits = bits * 1664525u + (unsigned){self.back}({self.to}(bounded({self.back}(p))));"
        if kind == 5:
            other = f" else {{ {self.statement(depth - 1)} }}" if rng.random() < 0.5 else ""
            return f"if (__hlt({self.scalar(1)}, {self.scalar(1)})) {{ {self.statement(depth - 1)} {self.statement(depth - 1)} }}{other}"
        if kind == 6:
            n = rng.randrange(1 << 30)
            return f"for (unsigned i{n} = 0; i{n} < (bits >> 7 & 3) + 1; i{n}++) {{ {self.statement(depth - 1)} bits += i{n} * 77; }}"
        return "mix_all();"


def program(seed, division=True, loose=False):
    rng = random.Random(seed)
    kind = rng.choice(["half", "bfloat"])
    maker = Maker(rng, kind, division, loose)
    body = "\n    ".join(maker.statement(2) for _ in range(rng.randint(5, 14)))
    one, two = maker.one, maker.two
    low = "__low2float" if kind == "half" else "__low2float"
    return f"""#include "runtime.h"
#include "cuda_fp16.h"
#include "cuda_bf16.h"
#ifdef __CUDACC_RTC__
#define FUNCTION static __device__
#else
#define FUNCTION static
#endif
FUNCTION float bounded(float x)
{{
    return x > 0 ? x < 60000.0f ? x : 60000.0f : 0;
}}
FUNCTION void work(unsigned *out, unsigned of)
{{
    struct checksum sum = {{of}};
    unsigned bits = of * 2654435761u + 12345;
    {one} p = {maker.to}((float)of * 0.37f - 5.0f), q = {maker.to}(1.0f + (float)(of % 7)), r = {maker.to}(-0.125f * (float)of);
    {two} P = {"__floats2half2_rn" if kind == "half" else "__floats2bfloat162_rn"}((float)of, 0.5f), Q = {"__float2half2_rn" if kind == "half" else "__float2bfloat162_rn"}(2.5f - (float)of);
#define mix_all() mix_float(&sum, {maker.back}(p)), mix_float(&sum, {maker.back}(q)), mix_float(&sum, {maker.back}(r)), mix_float(&sum, {low}(P)), \\
                  mix_float(&sum, __high2float(P)), mix_float(&sum, {low}(Q)), mix_float(&sum, __high2float(Q)), mix(&sum, bits)
    {body}
    mix_all();
    out[2 * of] = (unsigned)sum.state;
    out[2 * of + 1] = (unsigned)(sum.state >> 32);
}}
ENTRY run(unsigned *out, unsigned seed)
{{
    work(out, THREAD + seed);
}}
"""
