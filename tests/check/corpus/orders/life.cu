// life: in place.
//
// Needs:    CUDA C++17, sm_90
// LAUNCH:   --grid 1 --block 256 --arg u32[256]:random(5) --arg u32:6
// EXPECT:   race-shared @read @store within cta
// ALLOW:    race-shared race-same-value

// Conway's game of life on a torus of one block.
extern "C" __global__ void life(unsigned *cells, unsigned turns)
{
    __shared__ unsigned char grid[1][16][16];
    const unsigned x = threadIdx.x % 16, y = threadIdx.x / 16;
    grid[0][y][x] = cells[threadIdx.x] & 1;
    __syncthreads();
    for (unsigned turn = 0; turn < turns; turn++) {
        unsigned alive = 0;
        for (unsigned k = 0; k < 9; k++)
            if (k != 4)
                alive += grid[0][(y + k / 3 + 15) % 16][(x + k % 3 + 15) % 16]; // @read
        grid[0][y][x] = alive == 3 || (alive == 2 && grid[0][y][x]); // @store
        __syncthreads();
    }
    cells[threadIdx.x] = grid[0][y][x];
}
