// 2 or 4 neighbours of a shared array in one access.
#pragma once

#include "lockstep/kernel/kernel.hpp"

namespace lockstep {

/// K = 2 or 4 elements from `index` on. `index` must be a multiple of K.
template <int K, class T, class I>
Wide<T, K> wide(const SharedArray<T>& shared, const I& index) {
  ir::Instruction load{ir::Op::shared_load};
  load.type = detail::kType<T>;
  load.lanes = uint8_t(K);
  load.imm = shared.id();
  load.args[0] = detail::id_of<i32>(index);
  const ir::Id all = detail::builder().append(load);
  return [&]<int... k>(std::integer_sequence<int, k...>) {
    return Wide<T, K>{
        {Val<T>::from(detail::builder().emit(ir::Op::extract, detail::kType<T>, {all}, uint64_t(k)))...}};
  }(std::make_integer_sequence<int, K>{});
}

}  // namespace lockstep
