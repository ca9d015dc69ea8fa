// two_in_flight_ok: with fences both ways.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 2 --block 32 --arg u32[32] --arg u32[2] --arg u32[128]
// EXPECT:   clean

extern "C" __global__ void two_in_flight_ok(unsigned *buffer, volatile unsigned *turn, unsigned *out)
{
    for (unsigned round = 0; round < 4; round++) {
        if (blockIdx.x == 0) {
            while (turn[0] != round)
                ;
            __threadfence();
            buffer[threadIdx.x] = round * 32 + threadIdx.x; // @store
            __threadfence();
            __syncwarp();
            if (threadIdx.x == 0)
                turn[1] = round + 1;
        } else {
            while (turn[1] != round + 1)
                ;
            __threadfence();
            out[round * 32 + threadIdx.x] = buffer[threadIdx.x]; // @read
            __threadfence();
            __syncwarp();
            if (threadIdx.x == 0)
                turn[0] = round + 1;
        }
    }
}
