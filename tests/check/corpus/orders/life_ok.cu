// life_ok: from one buffer into the other, one barrier a turn.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 256 --arg u32[256]:random(5) --arg u32:6
// EXPECT:   clean

// Conway's game of life on a torus of one block.
extern "C" __global__ void life_ok(unsigned *cells, unsigned turns)
{
    __shared__ unsigned char grid[2][16][16];
    const unsigned x = threadIdx.x % 16, y = threadIdx.x / 16;
    grid[0][y][x] = cells[threadIdx.x] & 1;
    __syncthreads();
    for (unsigned turn = 0; turn < turns; turn++) {
        unsigned alive = 0;
        for (unsigned k = 0; k < 9; k++)
            if (k != 4)
                alive += grid[turn % 2][(y + k / 3 + 15) % 16][(x + k % 3 + 15) % 16]; // @read
        grid[(turn + 1) % 2][y][x] = alive == 3 || (alive == 2 && grid[turn % 2][y][x]); // @store
        __syncthreads();
    }
    cells[threadIdx.x] = grid[turns % 2][y][x];
}
