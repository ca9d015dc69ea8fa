/* Each diagnostic of the front end: a text that fires it, and its silent twin. `module` texts stand at module
   level after the head, or are whole modules when they name their .version; the others are statements of an
   entry. Also: what an error records, and how .version
   is limited. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ptx/ptx.h"

static const char head[] = ".version 9.0\n.target sm_90\n.address_size 64\n"
                           ".global .align 16 .b8 g[64];\n.const .u32 c[4];\n"
                           ".func f() { ret; }\n"
                           ".func (.param .b32 r) one(.param .b32 a) { ret; }\n";
static const char entry[] =
    ".entry k(.param .u64 par)\n{\n.reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<8>;\n"
    ".reg .f32 %f<4>; .reg .b64 %rd<8>; .reg .f64 %d<4>; .reg .b128 %q<2>;\n"
    ".shared .align 16 .b8 s[256];\n";

struct fault {
    bool module;
    const char *bad, *message, *good;
};
static const struct fault faults[] = {
    /* names and scopes */
    {0, "mov.u32 %r1, %x7;", "'%x7' is not declared", "mov.u32 %r1, %r7;"},
    {0, "mov.u32 %r1, %r8;", "'%r8' is not declared", "mov.u32 %r1, %r7;"},
    {0, ".reg .b32 a; .reg .f32 a;", "'a' is already declared in this scope",
     ".reg .b32 a; { .reg .f32 a; }"},
    {0, "bra L;", "label 'L' is not defined", "bra L; L:"},
    {0, "bra L; { L: }", "label 'L' is not defined", "{ bra L; } L:"},
    {0, "L: L:", "label 'L' is already defined in this scope", "L: { L: }"},
    {0, "@%r1 ret;", "'%r1' is no predicate register", "@%p1 ret;"},
    {0, "@%p9 ret;", "'%p9' is not declared", "@!%p1 ret;"},
    {0, "{ .param .b32 a; @%p1 st.param.b32 [a], 1; call f; }",
     "'st.param' with 'a', a parameter of calls, cannot be predicated", "@%p1 call (%r1), one, (%r2);"},
    {0, "{ .param .align 8 .b8 a[8]; @!%p1 ld.param.v2.b32 {%r1, %r2}, [a]; }",
     "'ld.param' with 'a', a parameter of calls, cannot be predicated", "@!%p1 ld.param.b64 %rd1, [par];"},
    {1, ".entry k() { .reg .pred p; .param .b32 r; @p st.param.b32 [r], 1; ret; }",
     "'st.param' with 'r', a parameter of calls, cannot be predicated",
     ".func (.param .b32 r) h() { .reg .pred p; @p st.param.b32 [r], 1; ret; }"},
    /* instructions and qualifiers */
    {0, "addd.u32 %r1, %r2, %r3;", "did you mean 'add'", "add.u32 %r1, %r2, %r3;"},
    {0, "add.u33 %r1, %r2, %r3;", "unknown qualifier '.u33' of 'add'", "add.s32 %r1, %r2, %r3;"},
    {0, "add.sat.u32 %r1, %r2, %r3;", "does not belong to 'add'", "add.sat.s32 %r1, %r2, %r3;"},
    {0, "add %r1, %r2, %r3;", "'add' lacks", "add .u32 %r1, %r2, %r3;"},
    {0, "cvt.f32.u32 %f1, %r1;", "'cvt' lacks", "cvt.rn.f32.u32 %f1, %r1;"},
    {0, "mul.u32.lo %r1, %r2, %r3;", "'mul'", "mul.lo.u32 %r1, %r2, %r3;"},
    {0, "ld.relaxed.u32 %r1, [%rd1];", "'ld' lacks", "ld.gpu.global.relaxed.u32 %r1, [%rd1];"},
    {0, "mbarrier.arrive.release.b64 %rd1, [s];", "'mbarrier' lacks",
     "mbarrier.arrive.release.cta.b64 %rd1, [s];"},
    /* operands */
    {0, "add.u32 %r1, %r2;", "needs 3 operands, not 2", "add.u32 %r1, %r2, %r3;"},
    {0, "add.u32 %r1, %r2, %r3, %r4;", "1 operands too many", "mad.lo.u32 %r1, %r2, %r3, %r4;"},
    {0, "add.u32 %f1, %r2, %r3;", "register '%f1' is .f32, 'add' needs .u32", "and.b32 %f1, %r2, %r3;"},
    {0, "add.u32 %rd1, %r2, %r3;", "register '%rd1' is .b64", "ld.u32 %rd1, [%rd2];"},
    {0, "add.u32 1, %r2, %r3;", "the result must be a register", "add.u32 %r1, 1, %r3;"},
    {0, "add.f32 %f1, %f2, 1;", "does not fit type .f32", "add.f32 %f1, %f2, 1.0;"},
    {0, "add.u32 %r1, %r2, 1.5;", "does not fit type .u32", "mov.b32 %r1, 0f3F800000;"},
    {0, "add.u32 %r1, %tid.x, 1;", "a special register can be read by mov and cvt only",
     "mov.u32 %r1, %tid.x;"},
    {0, "mov.u32 %r1, %tid;", "needs .x, .y, .z or .w", "mov.v4.u32 {%r1, %r2, %r3, %r4}, %tid;"},
    {0, "add.u64 %rd1, %rd2, g;", "not the address of a variable", "mov.u64 %rd1, g;"},
    {0, "add.u32 _, %r2, %r3;", "cannot be discarded", "mov.b64 {%r1, _}, %rd1;"},
    {0, "add.u32 %r1, _, %r3;", "'_' has no value to read", "add.u32 %r1, %r1, %r3;"},
    {0, "add.u32 %r1, !%r2, %r3;", "only a predicate can be negated", "and.pred %p1, !%p2, %p3;"},
    {0, "add.u32 {%r1}, %r2, %r3;", "a vector is not allowed here", "ld.global.u32 {%r1}, [%rd1];"},
    {0, "ld.global.v2.u32 %r1, [%rd1];", "must be a vector {…} of 2", "ld.global.v2.u32 {%r1, %r2}, [%rd1];"},
    {0, "ld.global.v4.u32 {%r1, %r2}, [%rd1];", "must be a vector of 4, not of 2",
     "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];"},
    {0, "mov.b64 %rd1, {%r1, %r2, %r3};", "packed from 2 or 4 parts", "mov.b64 %rd1, {%h0, %h1, %h2, %h3};"},
    {0, "mov.b64 %rd1, {%h1, %h2};", "must have 32 bits", "mov.b32 %r1, {%h1, %h2};"},
    {0, "elect.sync %r1, -1;", "a pair d|p is needed", "elect.sync %r1|%p1, -1;"},
    {0, "add.u32 %r1|%p1, %r2, %r3;", "a pair d|p is not allowed", "setp.eq.u32 %p1|%p2, %r2, %r3;"},
    {0, "ld.global.u32 %r1, %rd1;", "an address in brackets is needed", "ld.global.u32 %r1, [%rd1];"},
    {0, "ld.global.u32 %r1, [%f1];", "an address register must be", "ld.global.u32 %r1, [%rd1+-4];"},
    {0, "ld.shared.u32 %r1, [g];", "'g' is a .global variable, the instruction accesses .shared",
     "ld.shared.u32 %r1, [s+4];"},
    {0, "ld.global.u32 %r1, [16];", "a number as address", "ld.local.u32 %r1, [16];"},
    {0, "ld.global.u32 %r1, [%rd1, {%r1}];", "this address has no coordinates",
     "cp.async.bulk.prefetch.tensor.1d.L2.global [%rd1, {%r1}];"},
    {0, "cp.async.bulk.prefetch.tensor.2d.L2.global [%rd1, {%r1}];", "number of coordinates",
     "cp.async.bulk.prefetch.tensor.2d.L2.global [%rd1, {%r1, 0}];"},
    {0, "bra %r1;", "a label is needed", "bra L; L:"},
    {0, "add.u32 %r1.x, %r2, %r3;", "no such member", ".reg .v2 .b32 v; add.u32 v.x, v.y, 1;"},
    {0, "bar.sync 16;", "16 is not allowed", "bar.sync 15;"},
    {0, "bar.sync 0, 33;", "33 is not allowed", "bar.sync 0, 64;"},
    {0, "cp.async.ca.shared.global [s], [%rd1], 5;", "5 is not allowed",
     "cp.async.ca.shared.global [s], [%rd1], 8;"},
    {0, "cp.async.ca.shared.global [s], [%rd1], 4, 8;", "must not exceed",
     "cp.async.ca.shared.global [s], [%rd1], 8, 4;"},
    {0, "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1], 17, [s];",
     "17 is not allowed",
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1], 32, [s];"},
    {0, "mbarrier.try_wait.parity.shared.b64 %p1, [s], 2;", "2 is not allowed",
     "mbarrier.try_wait.parity.shared.b64 %p1, [s], 1;"},
    {0, "mbarrier.arrive.shared::cluster.b64 %rd1, [%r1];", "only '_'",
     "mbarrier.arrive.shared::cluster.b64 _, [%r1];"},
    {0, "ld.global.v2.b128 {%q0, %q1}, [%rd1];", "the vector is too large", "ld.global.b128 %q0, [%rd1];"},
    {0, "ld.global.v4.b64 {%rd1, %rd2, %rd3, %rd4}, [%rd1];", "256 bits requires .target sm_100",
     "ld.global.v2.b64 {%rd1, %rd2}, [%rd1];"},
    {0, "ld.shared.L2::cache_hint.u32 %r1, [s], %rd1;", "'ld'",
     "ld.global.L2::cache_hint.u32 %r1, [%rd1], %rd2;"},
    {0, "ld.global.L2::cache_hint.u32 %r1, [%rd1];", "needs 3 operands", "ld.global.u32 %r1, [%rd1];"},
    {0, "cvt.sat.u32.u16 %r1, %h1;", ".sat has no effect", "cvt.sat.u16.u32 %h1, %r1;"},
    {0, "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r1}, {%r1, %r2}, {%r3}, {%r1, %r2};",
     "must be a vector of 2, not of 1",
     "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r1, %r2}, {%r3}, {%r1, %r2};"},
    {0, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 %r1, [s];", "a vector {…} is needed",
     "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [s];"},
    /* versions and targets */
    {0, "redux.sync.min.f32 %f1, %f2, -1;", "requires .target sm_100 or higher",
     "redux.sync.min.u32 %r1, %r2, -1;"},
    {0, "wgmma.fence.sync.aligned;", "is not supported on .target sm_90; it needs sm_90a",
     "fence.proxy.async;"},
    {0, "shfl.down.b32 %r1, %r2, 1, 31;", "is not supported on .target sm_90",
     "shfl.sync.down.b32 %r1, %r2, 1, 31, -1;"},
    /* calls and tables */
    {0, "call ff;", "'ff' is not declared", "call f;"},
    {0, "call g;", "neither a function nor a register", "call f, ();"},
    {0, "call f, (%r1);", "has 1 arguments, the function 0", "call (%r1), one, (%r2);"},
    {0, "call (%r1), one, (%rd1);", "8 bytes are passed, 'a' has 4", "call (%r1), one, (3);"},
    {0, "call (%r1), %rd1, (%r2);", "needs a .callprototype",
     "T: .calltargets one; call (%r1), %rd1, (%r2), T;"},
    {0, "T: .callprototype _ (.param .b32 _); call %rd1, (%rd2), T;", "8 bytes are passed, '_' has 4",
     "T: .callprototype _ (.param .b32 _); call %rd1, (%r2), T;"},
    {0, "T: .callprototype (.param .b32 _) _; call (%rd2), %rd1, T;", "8 bytes are passed, '_' has 4",
     "T: .callprototype (.param .b32 _) _; call (%r2), %rd1, T;"},
    {0, "T: .callprototype _ (.param .b32 _); call %rd1, (%r1, %r2), T;", "has 2 arguments",
     "T: .callprototype _ (.param .b32 _); call %rd1, (%r1), T;"},
    {0, "L: brx.idx %r1, L;", "is not declared here as a list", "T: .branchtargets L; L: brx.idx %r1, T;"},
    {0, "T: .callprototype _ (); brx.idx %r1, T;", "needs a .branchtargets list",
     "T: .branchtargets L<2>; L0: L1: brx.idx %r1, T;"},
    {0, "T: .branchtargets L; L: bra T;", "'T' is a list, not a label", "bra L; L:"},
    {0, "T: .calltargets g;", "'g' is not a declared function", "T: .calltargets f;"},
    /* constants and syntax */
    {0, "mov.u32 %r1, 1/0;", "division by zero", "mov.u32 %r1, 1/1;"},
    {0, "mov.u32 %r1, 09;", "a digit that its base lacks", "mov.u32 %r1, 07;"},
    {0, "mov.u32 %r1, 0x;", "hexadecimal number without digits", "mov.u32 %r1, 0xf;"},
    {0, "mov.u32 %r1, 12ab;", "number followed by a letter", "mov.u32 %r1, 12U;"},
    {0, "mov.f32 %f1, 0f123;", "exactly 8 hexadecimal digits", "mov.f32 %f1, 0f12345678;"},
    {0, "mov.f64 %d1, 0d123;", "exactly 16 hexadecimal digits", "mov.f64 %d1, 0d0123456789abcdef;"},
    {0, "mov.u32 %r1, ~1.5;", "'~' needs an integer", "mov.u32 %r1, ~1;"},
    {0, "mov.u32 %r1, (.u32)1;", "a cast in a constant", "mov.u32 %r1, (.u64)1;"},
    {0, "mov.u32 %r1 %r2;", "expected ';' after the instruction, found '%r2'", "mov.u32 %r1, %r2;"},
    {0, "mov.u32 %r1, ;", "expected an operand, found ';'", "mov.u32 %r1, 0;"},
    {0, "mov.u32 %r1, \\;", "character that PTX does not use", "mov.u32 %r1, /* */ 0;"},
    {0, ".rag .b32 a;", "unknown directive in a function", ".reg .b32 a;"},
    {0, ".reg .e4m3 a;", "cannot have type .e4m3", ".reg .f16 a;"},
    {0, ".reg .v4 .b64 a;", "at most 128 bits", ".reg .v4 .b32 a;"},
    {0, ".pragma nounroll;", "expected the pragma in quotes", ".pragma \"nounroll\";"},
    {0, "+;", "expected an instruction, a label or a directive", "ret;"},
    {0, ";", "expected an instruction, a label or a directive", "{ }"},
    /* module level */
    {1, ".globl .u32 a;", "expected a directive", ".global .u32 a;"},
    {1, ".global .u32 g;", "'g' was declared before with another type",
     ".extern .global .align 16 .b8 g[64];"},
    {1, ".global .u32 a; .global .u32 a;", "'a' is already defined",
     ".extern .global .u32 a; .visible .global .u32 a;"},
    {1, ".extern .global .u32 a; .global .u32 a;", "needs .visible, .weak or .common",
     ".extern .global .u32 a; .weak .global .u32 a;"},
    {1, ".global .pred a;", "a variable cannot have type .pred", ".global .b8 a;"},
    {1, ".global .align 3 .u32 a;", "a power of two", ".global .align 8 .u32 a;"},
    {1, ".global .u32 a[];", "'a' has no size", ".extern .global .u32 a[];"},
    {1, ".global .u32 a[2][];", "only the first dimension", ".global .u32 a[][2] = {{1, 2}};"},
    {1, ".global .u32 a[-1];", "expected the number of elements", ".global .u32 a[1];"},
    {1, ".global .u32 a[2] = {1, 2, 3};", "too many values for 'a'", ".global .u32 a[3] = {1, 2, 3};"},
    {1, ".global .f32 a = 1;", "needs a floating-point constant", ".global .f32 a = 1.0;"},
    {1, ".global .u32 a = 1.5;", "needs an integer constant", ".global .b32 a = 0f3F800000;"},
    {1, ".global .b16 a = g;", "elements of 4 or 8 bytes", ".global .b64 a = g;"},
    {1, ".global .u64 a = nothing;", "'nothing' is not declared", ".global .u64 a = f;"},
    {1, ".global .u8 a = 0xFE(g);", "a mask selects one byte", ".global .u8 a = 0xFF00(g);"},
    {1, ".shared .u32 a = 1;", "only .global and .const", ".const .u32 a = 1;"},
    {1, ".extern .global .u32 a = 1;", "an .extern variable cannot be initialised",
     ".visible .global .u32 a = 1;"},
    {1, ".func f() { ret; }", "function 'f' is already defined", ".func h(); .func h() { ret; }"},
    {1, ".entry f() { ret; }", "'f' was declared before as something else", ".entry h() { ret; }"},
    {1, ".entry h() .reqntid 1 .maxntid 1 { ret; }", ".reqntid and .maxntid contradict",
     ".entry h() .reqntid 1 { ret; }"},
    {1, ".entry h() .reqnctapercluster 2 .maxclusterrank 2 { ret; }",
     ".reqnctapercluster and .maxclusterrank", ".entry h() .maxclusterrank 2 { ret; }"},
    {1, ".entry h() .blocksareclusters { ret; }", "needs .reqntid",
     ".entry h() .reqntid 1 .reqnctapercluster 1 .blocksareclusters { ret; }"},
    {1, ".entry h() .maxntd 1 { ret; }", "unknown directive of a function", ".entry h() .maxntid 1 { ret; }"},
    {1, ".entry h() {", "expected '}'", ".entry h() { }"},
    {1, ".alias f, nothing;", "'nothing' is not a declared function", ".func other(); .alias other, f;"},
    {1, ".func other(); .alias other, other;", "'other' cannot be an alias of itself",
     ".func other(); .alias other, f;"},
    {1, ".file 1 name;", "the file's name in quotes", ".file 1 \"name\""},
    {1, ".section debug_info { .b8 1 }", "expected the name of a section", ".section .debug_info { .b8 1 }"},
    {1, ".section .debug_info { .b8 256 }", "does not fit .b8", ".section .debug_info { .b8 255, -128 }"},
    {1, ".section .debug_info { .b8 x }", "expected a number", ".section .debug_info { .b32 x+4 .b64 x-y }"},
    {1, ".section .debug_str { L: L: }", "label 'L' is already defined in a section",
     ".section .debug_str { L: M: }"},
    {0, ".loc 1 2 3, function_name L, inlined_at 1 4 5", "no .loc before has that place", ".loc 1 2 3"},
    {1, ".file 1 \"a\" .file 1 \"b\"", "file 1 is already declared", ".file 1 \"a\" .file 2 \"b\""},
    {1, ".entry n() { .loc 1 4 5 .loc 1 2 3, function_name L, inlined_at 1 4 5 ret; }",
     "no section has that label",
     ".entry n() { .loc 1 4 5 .loc 1 2 3, function_name L, inlined_at 1 4 5 ret; } .section .debug_str { L: "
     "}"},
    {1, ".entry n() { .pragma \"frequency x\"; ret; }", "pragma frequency needs a number",
     ".entry n() { .pragma \"frequency 4\"; ret; }"},
    {1, ".entry n() { .pragma \"abi_param_reg all\"; ret; }", "not for bodies of functions",
     ".pragma \"abi_param_reg all\";"},
    /* what .version and .target must be */
    {1, ".version 8.9 .target sm_90", "there is no PTX ISA .version 8.9", ".version 8.8 .target sm_90"},
    {1, ".version 8.8 .target sm_90 .entry n() .reqntid 4 .reqnctapercluster 2 .blocksareclusters { ret; }",
     ".blocksareclusters requires PTX ISA .version 9.0",
     ".version 9.0 .target sm_90 .entry n() .reqntid 4 .reqnctapercluster 2 .blocksareclusters { ret; }"},
    {1, ".version 9.0 .target sm_80 .entry n() .explicitcluster { ret; }",
     ".explicitcluster requires .target sm_90",
     ".version 9.0 .target sm_90 .entry n() .explicitcluster { ret; }"},
    /* arrays, calls, spellings */
    {0, ".shared .b32 a[4]; mov.u32 %r1, a[%f1];", "an index register must be an integer",
     ".shared .b32 a[4]; mov.u32 %r1, a[%h1+1];"},
    {0, ".shared .b32 a; mov.u32 %r1, a[%r2];", "'a' is no array", ".shared .b32 a[4]; mov.u32 %r1, a[%r2];"},
    {0, ".shared .b32 a[4]; mov.u32 %r1, a+4[%r2];", "an index follows the array's name",
     ".shared .b32 a[4]; mov.u32 %r1, a[%r2+4];"},
    {0, ".shared .b32 a[4]; mov.u32 %r1, a[f];", "an index is a constant, a register or a variable",
     ".shared .b32 a[4]; mov.u32 %r1, a[a];"},
    {0, ".shared .b32 a[4]; mov.u32 %r1, a[%tid];", "a special register with members is no index",
     ".shared .b32 a[4]; mov.u32 %r1, a[%laneid];"},
    {0, "call (%r1), one, (_);", "an argument is a register", "call (_), one, (%r1);"},
    {0, ".reg .u16 h; U: .callprototype _ (.param .u16 _); call %rd1, (h), U;",
     "cannot be passed to a function", "U: .callprototype _ (.param .b16 _); call %rd1, (%h1), U;"},
    {1, ".func o(.reg .b32 p[2]) { ret; }", "a register is no array", ".func o(.reg .v2 .b32 p) { ret; }"},
    {1, ".func o() .abi_preserve 1 .abi_preserve 2 { ret; }", "stands here already",
     ".func o() .abi_preserve 1 .abi_preserve_control 2 { ret; }"},
    {0, "mul .lo.u32 %r1, %r2, %r3;", "no white space may stand", "mul.lo .u32 %r1, %r2, %r3;"},
    {0, "setp.eq.u32 _|_, %r1, 1;", "cannot be discarded", "setp.eq.u32 _|%p1, %r1, 1;"},
    {0, "ld.v2.b32 {_, _}, [%rd1];", "a part of the vector must be a register",
     "ld.v2.b32 {_, %r1}, [%rd1];"},
    {0, "_: ret;", "'_' cannot be a label", "_L: ret;"},
    {0, "bra f; f: ret;", "is no label yet", "f: bra f;"},
    {1, ".section .debug_info {", "expected .b8, .b16, .b32, .b64 or a label",
     ".section .debug_info { .b8 1, 2 }"},
    {1, ".version 9.0 .target sm_90 .address_size 16", "an address size is 32 or 64",
     ".version 9.0 .target sm_90 .address_size 64"},
    {1, ".version 9.0 .target sm_90 .address_size 32", "32-bit addresses are not supported",
     ".version 9.0 .target sm_80 .address_size 32"},
    {1, ".address_size 64", "expected a directive", ".global .u32 a;"},
    {1, ".version 9.0 .target sm_90, sm_9", "'sm_9' is not a target", ".version 9.0 .target sm_90, sm_90a"},
    {1, ".version 9.0 .target sm_x", "expected a target such as sm_90 first",
     ".version 9.0 .target compute_90"},
    {1, ".version 9.0 .target sm_90f", "'sm_90f' is not a target", ".version 9.0 .target sm_100f"},
    {1, ".version 9.0 .target debug", "expected a target such as sm_90 first",
     ".version 9.0 .target sm_90, texmode_unified"},
    {1, ".version 9.0 .target sm_90, debug", "without a .section of debug data",
     ".version 9.0 .target sm_90, debug .section .debug_info { .b8 1 }"},
    {1, ".version 9.0 .target sm_90, texmode_independent, texmode_unified", "contradict",
     ".version 9.0 .target sm_90, texmode_independent"},
    {1, "/* ", "comment without its end", "/* */"},
    {1, "// caf\xc3\xa9", "ASCII characters only", "// cafe"},
    {1, ".pragma \"x", "string without its end", ".pragma \"nounroll\";"},
    {1, ".pragma \"x\";", "unknown pragma 'x'", ".entry h() .pragma \"x\"; { ret; }"},
};

/* Parses the text in its place; the message of the first failure, or "". */
static void outcome(const struct fault *fault, const char *text, char *message, size_t size)
{
    char whole[4096];
    struct ptx_module *module = NULL;
    struct clab_error error = {0};
    bool complete = strncmp(text, ".version", 8) == 0;
    int bytes = complete        ? snprintf(whole, sizeof whole, "%s\n", text)
                : fault->module ? snprintf(whole, sizeof whole, "%s%s\n", head, text)
                                : snprintf(whole, sizeof whole, "%s%s%s\nret; }\n", head, entry, text);
    assert_true(bytes > 0 && (size_t)bytes < sizeof whole);
    ptx_parse(whole, (size_t)bytes, "fault.ptx", NULL, &module, &error);
    snprintf(message, size, "%s", error.message);
    if (module) {
        message[0] = 0;
        for (uint32_t i = 0; i < module->n_functions && !message[0]; i++)
            if (module->functions[i]->error)
                snprintf(message, size, "%s", module->functions[i]->error->message);
    }
    assert_true(fault->module || module); /* a bad statement never takes the module with it */
    ptx_module_free(module);
    clab_error_clear(&error);
}

static void every_diagnostic(void **state)
{
    (void)state;
    unsigned failures = 0;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        char message[1100];
        outcome(&faults[i], faults[i].bad, message, sizeof message);
        if (!strstr(message, faults[i].message) || !message[0]) {
            print_error("%s\n  wanted: %s\n  got:    %s\n", faults[i].bad, faults[i].message, message);
            failures++;
        }
        outcome(&faults[i], faults[i].good, message, sizeof message);
        if (message[0]) {
            print_error("%s\n  must be silent, got: %s\n", faults[i].good, message);
            failures++;
        }
    }
    assert_int_equal(failures, 0);
}

static void a_failure_names_its_place(void **state)
{
    (void)state;
    static const char text[] =
        ".version 8.0\n.target sm_90\n.address_size 64\n.entry bad()\n{\n\t.reg .b32 %r<3>;\n"
        "\tadd.u32 %r1, %r2, %r7;\n\tret;\n}\n.entry good() { ret; }\n";
    struct ptx_module *module;
    struct clab_error error = {0};
    assert_int_equal(ptx_parse(text, sizeof text, "place.ptx", NULL, &module, &error), CLAB_OK);
    const struct clab_error *fault = ptx_function_get(module, "bad")->error;
    assert_non_null(fault);
    assert_int_equal(fault->status, CLAB_PTX_SYNTAX);
    assert_string_equal(fault->file, "place.ptx");
    assert_int_equal(fault->line, 7);
    assert_int_equal(fault->column, 20);
    assert_string_equal(fault->source_line, "\tadd.u32 %r1, %r2, %r7;");
    assert_string_equal(fault->kernel, "bad");
    assert_null(ptx_function_get(module, "good")->error);
    ptx_module_free(module);
}

static void versions_are_limited(void **state)
{
    (void)state;
    static const char text[] = ".version 9.1\n.target sm_90\n";
    struct ptx_parse_options options = {.max_version = 90};
    struct ptx_module *module = NULL;
    struct clab_error error = {0};
    assert_int_equal(ptx_parse(text, sizeof text, "new.ptx", &options, &module, &error), CLAB_LOAD);
    assert_null(module);
    assert_non_null(strstr(error.message, "9.1"));
    assert_int_equal(ptx_parse(text, sizeof text, "new.ptx", NULL, &module, &error), CLAB_OK);
    ptx_module_free(module);
    options.max_version = 91;
    assert_int_equal(ptx_parse(text, sizeof text, "new.ptx", &options, &module, &error), CLAB_OK);
    ptx_module_free(module);
    clab_error_clear(&error);
}

static void count_fault(void *context, const struct clab_error *error)
{
    assert_true(error->line > 0);
    (*(unsigned *)context)++;
}

static void every_fault_is_told(void **state)
{
    (void)state;
    static const char text[] = ".version 8.0\n.target sm_90\n.entry k()\n{\nfoo;\nret;\nbar;\nadd.u32;\n}\n";
    unsigned count = 0;
    struct ptx_parse_options options = {.fault = count_fault, .fault_context = &count};
    struct ptx_module *module;
    struct clab_error error = {0};
    assert_int_equal(ptx_parse(text, sizeof text, "k.ptx", &options, &module, &error), CLAB_OK);
    assert_int_equal(count, 3);
    ptx_module_free(module);
}

static void statement_text(void **state)
{
    (void)state;
    static const char text[] = ".version 8.0\n.target sm_90\n.entry k()\n{\n.reg .b32 a;\n.reg .pred p;\n"
                               "@!p  add.u32\ta, // sum\n   a, 1;\n}\n";
    char out[64];
    struct ptx_module *module;
    struct clab_error error = {0};
    assert_int_equal(ptx_parse(text, sizeof text, "k.ptx", NULL, &module, &error), CLAB_OK);
    ptx_insn_text(module, &module->functions[0]->insns[0], out, sizeof out);
    assert_string_equal(out, "@!p add.u32 a, a, 1");
    ptx_insn_text(module, &module->functions[0]->insns[0], out, 8);
    assert_string_equal(out, "@!p add");
    ptx_module_free(module);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_diagnostic), cmocka_unit_test(a_failure_names_its_place),
        cmocka_unit_test(versions_are_limited), cmocka_unit_test(every_fault_is_told),
        cmocka_unit_test(statement_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
