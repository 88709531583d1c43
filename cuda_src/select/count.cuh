// How many elements are kept: what has to be known before a rest can be written behind them.
//
// Algorithm  Blocks walk over the tiles of select/tile.cuh, mark them, and add their sums to the
//            count, which is zero before.
// Bytes      sizeof(T) and the mark per element; launches: one; temporary storage: none.
// Predicate  As select/kernel.cuh.
// Bits       Integers are added.
#ifndef GPUALGO_SELECT_COUNT_CUH
#define GPUALGO_SELECT_COUNT_CUH

#include "parts/ptx.cuh"
#include "select/tile.cuh"

namespace gpualgo {

template <class Policy, class Keep, class T, class Access>
__global__ void __launch_bounds__(Policy::block_threads, Policy::min_blocks) select_count_kernel(
    const __grid_constant__
        ParamsFor<typename Keep::Operator, typename SelectTiles<Policy, Keep, T, Access>::Params>
            params) {
  take_numbers<typename Keep::Operator>(params);
  using Tiles = SelectTiles<Policy, Keep, T, Access>;
  struct Shared {
    int64 totals[Tiles::warps];
  };
  auto& shared = ptx::shared_memory<Shared>();
  const Tiles tiles{params};
  int64 total = 0;
  for (int64 tile = blockIdx.x; tile < params.num_tiles; tile += gridDim.x) {
    typename Tiles::Tile held;
    tiles.load(held, tile);
    tiles.mark(held, tile);
    total += held.total;
  }
  if (tiles.lane == 0) shared.totals[tiles.warp] = total;
  ptx::syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < Tiles::warps; ++i) total += shared.totals[i];
  ptx::atom_add_relaxed_gpu(reinterpret_cast<unsigned long long*>(params.num_kept), uint64(total));
}

}  // namespace gpualgo

#endif
