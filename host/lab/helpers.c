/* Our own kernels in PTX (PTX ISA 9.0: special registers %smid, %globaltimer, %clock64; ld.volatile), loaded
   on first use. They are text, so that every driver compiles them for its own GPU; the driver's JIT cache
   makes that cheap. */
#include "lab/helpers.h"

#include "driver/call.h"

/* The stamp waits for an edge of %globaltimer before it reads %clock64, so that a coarse timer (1 us on some
   GPUs) costs the clock no accuracy; 4096 looks outlast any tick. The fill's modulus-2^64 arithmetic is
   fill.c's. */
static const char source[] =
    ".version 7.8\n.target sm_90\n.address_size 64\n"

    ".visible .entry clab_blocker(.param .u64 flags, .param .u64 limit_ns)\n{\n"
    ".reg .pred %stop, %within;\n.reg .b32 %word;\n.reg .b64 %flags, %limit, %start, %now, %spent;\n"
    "ld.param.u64 %flags, [flags];\nld.param.u64 %limit, [limit_ns];\nmov.u64 %start, %globaltimer;\n"
    "again:\nld.volatile.global.u32 %word, [%flags];\nsetp.ne.u32 %stop, %word, 0;\n@%stop bra done;\n"
    "mov.u64 %now, %globaltimer;\nsub.u64 %spent, %now, %start;\nsetp.lt.u64 %within, %spent, %limit;\n"
    "@%within bra again;\nst.volatile.global.u32 [%flags+4], 1;\ndone:\nret;\n}\n"

    ".visible .entry clab_stamp(.param .u64 slots, .param .u32 n_slots, .param .u64 tag)\n{\n"
    ".reg .pred %beyond, %ticked, %more;\n.reg .b32 %sm, %n, %left;\n"
    ".reg .b64 %slots, %tag, %first, %now, %cycles, %at, %zero;\n"
    "ld.param.u64 %slots, [slots];\nld.param.u32 %n, [n_slots];\nld.param.u64 %tag, [tag];\n"
    "mov.u32 %sm, %smid;\nsetp.ge.u32 %beyond, %sm, %n;\n@%beyond bra done;\n"
    "mov.u32 %left, 4096;\nmov.u64 %zero, 0;\nmov.u64 %first, %globaltimer;\n"
    "again:\nmov.u64 %now, %globaltimer;\nmov.u64 %cycles, %clock64;\nsetp.ne.u64 %ticked, %now, %first;\n"
    "@%ticked bra store;\nsub.u32 %left, %left, 1;\nsetp.ne.u32 %more, %left, 0;\n@%more bra again;\n"
    "store:\nmad.wide.u32 %at, %sm, 32, %slots;\nst.global.v2.u64 [%at], {%now, %cycles};\n"
    "st.global.v2.u64 [%at+16], {%tag, %zero};\ndone:\nret;\n}\n"

    ".visible .entry clab_fill(.param .u64 out, .param .u64 count, .param .u64 weyl, .param .u32 mode, "
    ".param .u32 one)\n{\n"
    ".reg .pred %beyond, %is_random_float, %is_random, %is_iota_float, %is_iota, %set;\n"
    ".reg .b32 %mode, %one, %word, %other, %thread, %cta, %threads, %ctas;\n.reg .f32 %f;\n"
    ".reg .b64 %out, %count, %weyl, %i, %step, %z, %t, %at;\n"
    "ld.param.u64 %out, [out];\nld.param.u64 %count, [count];\nld.param.u64 %weyl, [weyl];\n"
    "ld.param.u32 %mode, [mode];\nld.param.u32 %one, [one];\n"
    "mov.u32 %thread, %tid.x;\nmov.u32 %cta, %ctaid.x;\nmov.u32 %threads, %ntid.x;\nmov.u32 %ctas, "
    "%nctaid.x;\n"
    "mul.wide.u32 %step, %threads, %ctas;\nmul.wide.u32 %i, %cta, %threads;\ncvt.u64.u32 %t, %thread;\n"
    "add.u64 %i, %i, %t;\n"
    "setp.eq.u32 %is_random_float, %mode, 1;\nsetp.eq.u32 %is_random, %mode, 2;\n"
    "setp.eq.u32 %is_iota_float, %mode, 3;\nsetp.eq.u32 %is_iota, %mode, 4;\n"
    "again:\nsetp.ge.u64 %beyond, %i, %count;\n@%beyond bra done;\n"
    "add.u64 %z, %i, 1;\nmul.lo.u64 %z, %z, 0x9e3779b97f4a7c15;\nadd.u64 %z, %z, %weyl;\n"
    "shr.u64 %t, %z, 30;\nxor.b64 %z, %z, %t;\nmul.lo.u64 %z, %z, 0xbf58476d1ce4e5b9;\n"
    "shr.u64 %t, %z, 27;\nxor.b64 %z, %z, %t;\nmul.lo.u64 %z, %z, 0x94d049bb133111eb;\n"
    "shr.u64 %t, %z, 31;\nxor.b64 %z, %z, %t;\n"
    "shr.u64 %t, %z, 63;\nsetp.ne.u64 %set, %t, 0;\nselp.b32 %word, %one, 0, %set;\n"
    "shr.u64 %t, %z, 40;\ncvt.rn.f32.u64 %f, %t;\nmul.rn.f32 %f, %f, 0f33800000;\nmov.b32 %other, %f;\n"
    "selp.b32 %word, %other, %word, %is_random_float;\n"
    "cvt.u32.u64 %other, %z;\nselp.b32 %word, %other, %word, %is_random;\n"
    "cvt.rn.f32.u64 %f, %i;\nmov.b32 %other, %f;\nselp.b32 %word, %other, %word, %is_iota_float;\n"
    "cvt.u32.u64 %other, %i;\nselp.b32 %word, %other, %word, %is_iota;\n"
    "shl.b64 %at, %i, 2;\nadd.u64 %at, %at, %out;\nst.global.u32 [%at], %word;\n"
    "add.u64 %i, %i, %step;\nbra again;\ndone:\nret;\n}\n";

clab_status clab_helpers_load(const struct clab_device *device, struct clab_error *error)
{
    const struct clab_driver *driver = device->driver;
    struct clab_helpers *helpers = device->helpers;
    if (helpers->module != NULL)
        return CLAB_OK;
    CUmodule module = NULL;
    clab_status status = CLAB_CALL(driver, error, cuModuleLoadDataEx, (&module, source, 0, NULL, NULL),
                                   "clusterlab's own kernels");
    if (status == CLAB_OK)
        status =
            CLAB_CALL(driver, error, cuModuleGetFunction, (&helpers->blocker, module, "clab_blocker"), NULL);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuModuleGetFunction, (&helpers->stamp, module, "clab_stamp"), NULL);
    if (status == CLAB_OK)
        status = CLAB_CALL(driver, error, cuModuleGetFunction, (&helpers->fill, module, "clab_fill"), NULL);
    if (status == CLAB_OK)
        helpers->module = module;
    else if (module != NULL)
        (void)driver->cuModuleUnload(module);
    return status;
}
