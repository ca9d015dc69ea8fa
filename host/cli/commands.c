/* The list of subcommands with their help texts: the contract of the command line (design 4.2). */
#include "cli/cli.h"

#include <stddef.h>

const struct clab_command_info clab_commands[] = {
    {"run", clab_cmd_run, "run an experiment: verify every variant, time it on a GPU, print the table",
     "clusterlab run EXPERIMENT [options]\n"
     "\n"
     "EXPERIMENT is a name (looked for in ./kernels, $CLUSTERLAB_PATH and the installed tree) or a .lua "
     "file.\n"
     "\n"
     "  --device D         cuda:N or emu:ARCH (emu:sm_100); again for more. Default: cuda:0 where there is a "
     "GPU of\n"
     "                     compute capability 9.0 or later, else emu:sm_90\n"
     "  --variant V        only this variant; again for more\n"
     "  --with FILE[:ENTRY] add your own .cu, .ptx or .cubin as a variant named after the file\n"
     "  --cluster LIST     cluster sizes: 1,2,4 or shapes: 2x2,4x2\n"
     "  --set NAME=VALUE   set a parameter of the experiment; again for more\n"
     "  --image KIND       cubin (default on a GPU) or ptx (the driver's JIT compiles)\n"
     "  --arch A           compile for this architecture instead of the device's\n"
     "  --samples N        N timed samples a row, instead of as many as the noise target (+-0.5 % of the "
     "median) needs\n"
     "  --hot              time batches of launches back to back too (no L2 flush between them)\n"
     "  --timeout S        seconds after which a launch or a measurement counts as hung (default: 30 on a "
     "GPU, "
     "none on emu:*,\n"
     "                     where a launch ends when it makes no progress or its budget is used up)\n"
     "  --check            then check the rows for hazards too, as clusterlab check does (emulated devices)\n"
     "  --json FILE        records as JSON Lines; - for standard output (and no table)\n"
     "  --csv FILE         rows as CSV\n"
     "  --emu-schedule fast|fair   --emu-seed N   --emu-threads N   --emu-isa base|v3|v4|auto   --emu-driver "
     "13.0\n"
     "  --emu-initial-clusters N   --emu-decline N          --emu-budget N     options of the stand-in "
     "driver\n"
     "                     budget: warp instructions of one launch (default 200000000000; a CTA counts for "
     "256; 0: none)\n"
     "\n"
     "Times are measured with CUDA events (they resolve about 0.5 us), L2 flushed before each launch, "
     "variants interleaved\n"
     "in shuffled rounds. `vs baseline` is this row's time divided by the baseline's, paired by round. "
     "Emulated rows are checked and counted; they have no times.\n"
     "\n"
     "Exit status: 0 all held, 1 a result was wrong, 2 usage or experiment file, 3 nothing could run, 4 "
     "compile or load,\n"
     "5 kernel fault or timeout, 6 internal error or output failed, 130 interrupted.\n"},
    {"list", clab_cmd_list, "experiments, their variants, and what each needs",
     "clusterlab list [--json]\n"
     "\n"
     "Lists the experiments in ./kernels, $CLUSTERLAB_PATH and the installed tree. A broken file is listed "
     "with its error\n"
     "(exit status 2).\n"},
    {"devices", clab_cmd_devices, "real and emulated devices, and the clusters they hold",
     "clusterlab devices [--json] [--device D]...\n"
     "\n"
     "For each device: compute capability, SMs, L2, shared memory, clocks, and for cluster sizes 1 to 16 the "
     "occupancy\n"
     "query's answers (portable and opted in) for a kernel of one warp that fills an SM's shared memory.\n"},
    {"doctor", clab_cmd_doctor, "what is installed, which version, what is missing and how to get it",
     "clusterlab doctor\n"
     "\n"
     "Looks for the driver, the stand-in driver, NVRTC, nvJitLink, the CUDA and CCCL headers, nvdisasm and "
     "cuobjdump.\n"
     "Exit status 3 when no experiment could run.\n"},
    {"launch", clab_cmd_launch, "launch one kernel of a file with given arguments",
     "clusterlab launch FILE ENTRY --grid X[,Y[,Z]] --block X[,Y[,Z]] [options]\n"
     "\n"
     "  --cluster X[,Y[,Z]]  cluster shape in CTAs (the grid counts CTAs too)\n"
     "  --smem BYTES         dynamic shared memory\n"
     "  --arg A              next argument: u32:7, f32:1.5, f32[1024]:ones, out=f32[4]:zero (printed "
     "afterwards),\n"
     "                       u32[64]:@FILE; fills: zero, ones, iota, random(SEED), bits(SEED), a number\n"
     "  --device D           as in run\n"
     "  --trace CTA,WARP     emulated devices: every instruction of one warp, on standard error\n"
     "  --timeout S          as in run\n"
     "  --emu-…              as in run\n"},
    {"compile", clab_cmd_compile, "compile a file for architectures: PTX, cubin, SASS",
     "clusterlab compile FILE [--arch LIST] [--emit ptx,cubin,sass] [--entry NAME] [--include DIR]... "
     "[--define NAME[=V]]...\n"
     "                   [--option RAW]... [-o DIR | --out DIR]\n"
     "\n"
     "LIST: sm_90,sm_100a; without it what a .ptx or .cubin was made for, sm_90 for a .cu.\n"
     "FILE is .cu, .ptx, .cubin or .fatbin. Writes DIR/STEM.ARCH.ptx (the default), .cubin and .sass; SASS "
     "needs nvdisasm\n"
     "or cuobjdump. -I and -D are short for --include and --define.\n"},
    {"check", clab_cmd_check, "find the race before the hardware does: kernels under every checker",
     "clusterlab check EXPERIMENT|FILE[:ENTRY]... [options]\n"
     "\n"
     "Runs kernels on the stand-in driver with all checkers on and reports what could go wrong on a GPU, "
     "whatever "
     "happened in\n"
     "this run: both parties, their lines, the missing ordering. An experiment is checked with its `check` "
     "parameters.\n"
     "\n"
     "  --device emu:ARCH  emulated device (default: emu:sm_90)\n"
     "  --seeds N          schedules to try (default: 4), --seed S: only this one, as a report names it\n"
     "  --strict           milder kinds give exit status 1 too\n"
     "  --suppress FILE    passes over what the file names: KIND|* [variant=V] [kernel=K] [file=F] [line=N] "
     "[symbol=S] # "
     "reason\n"
     "  --json             records on standard output instead of text\n"
     "  --variant V  --with FILE[:ENTRY]  --cluster LIST  --set NAME=VALUE     as in run, for experiments\n"
     "  --grid X,Y,Z  --block X,Y,Z  --cluster X,Y,Z  --smem B  --arg A        as in launch, for files\n"
     "  --entry NAME       the kernel of a file that has several (or FILE:ENTRY)\n"
     "  --arch A  --timeout S  --emu-budget N  --emu-initial-clusters N  --emu-decline N  --emu-driver 13.0  "
     " as in run\n"
     "\n"
     "Kinds of hazards:\n"
#define SEVERITY_HAZARD ""
#define SEVERITY_MILD   " (milder)"
#define CLAB_HAZARD_KIND(id, name, severity, text) "  " name ": " text SEVERITY_##severity "\n"
#include "check/hazards.def"
#undef CLAB_HAZARD_KIND
#undef SEVERITY_HAZARD
#undef SEVERITY_MILD
     "\n"
     "Exit status: 0 no hazard (milder kinds may be listed), 1 a hazard or a wrong result, 2 usage, 3 "
     "nothing could run, 4 "
     "compile or\n"
     "load, 5 a launch that was refused or did not end, 6 internal error, 130 interrupted.\n"},
    {"compare", clab_cmd_compare, "before and after: two record files, row by row",
     "clusterlab compare A.jsonl B.jsonl [--subset]\n"
     "\n"
     "Pairs the rows of two runs (same experiment, variant, parameters and device; another device where each "
     "file has just\n"
     "one) and prints the ratio of median times B/A, and the counts that changed.\n"
     "\n"
     "  --subset   B need not have every row of A\n"
     "\n"
     "Exit status 1 when a row that was ok is not, is missing (without --subset), or is slower by more than "
     "1 % and more\n"
     "than the intervals of both medians explain. A changed count alone is no regression: counts that the "
     "experiment calls\n"
     "wrong make the row wrong.\n"},
    {"with-emulator", clab_cmd_with_emulator, "run another program on the stand-in driver",
     "clusterlab with-emulator [--arch sm_100] -- PROGRAM ARGUMENTS...\n"
     "\n"
     "Sets LD_LIBRARY_PATH, LD_PRELOAD and CLUSTERLAB_EMU_ARCH, and becomes PROGRAM. Other options of the "
     "stand-in come\n"
     "from the environment: CLUSTERLAB_EMU_SCHEDULE, _SEED, _ISA, _INITIAL_CLUSTERS, _DECLINE, _DRIVER, "
     "_LOG.\n"},
    {NULL, NULL, NULL, NULL},
};
