// reduce: the textbook block sum, the twin of ptx/reduce_atomic.ptx in OpenCL C 1.2. OpenCL has no atomic add of floats
// there, so each work-group leaves its sum in `sums`, and the host adds them.
kernel void reduce(global const float *input, global float *sums, ulong n, local float *tile)
{
    const size_t local_id = get_local_id(0), size = get_local_size(0);
    const ulong index = (ulong)get_group_id(0) * 2 * size + local_id;
    float total = index < n ? input[index] : 0.0f;
    total += index + size < n ? input[index + size] : 0.0f;
    tile[local_id] = total;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t half_size = size / 2; half_size > 0; half_size /= 2) {
        if (local_id < half_size) {
            tile[local_id] += tile[local_id + half_size];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (local_id == 0) {
        sums[get_group_id(0)] = tile[0];
    }
}
