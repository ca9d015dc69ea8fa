/* "Stream synchronization behavior": the _ptds and _ptsz forms, where stream 0 is the calling thread's own
   default stream. Each marks the thread and calls its plain form. */
#include "emu/api.h"

#define PER_THREAD(symbol, plain, parameters, arguments) \
    CUresult CUDAAPI symbol parameters                   \
    {                                                    \
        struct api_thread *thread = api_thread();        \
        bool before = thread->per_thread_default;        \
        thread->per_thread_default = true;               \
        CUresult result = plain arguments;               \
        thread->per_thread_default = before;             \
        return result;                                   \
    }
#include "emu/api_per_thread.def"
#undef PER_THREAD
