#include "autodiff/kernels/sums/kept_tables.hpp"

#include <algorithm>

namespace lockstep::gradients {

RowTable KeptTables::table(const Device& device, const Key& key, const Shape& shape, int64_t rows,
                           const Update& update) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::ranges::find_if(kept_, [&](const Kept& k) { return k.device.same_as(device) && k.key == key; });
  const bool known = found != kept_.end();
  Kept kept{device, key, {}, {}};
  if (known) {
    kept = std::move(*found);
    kept_.erase(found);
  } else {
    kept.positions = device.allocate<i32>(shape);
    device.clear(kept.positions);
  }
  const Buffer changed = device.allocate<u32>({1});
  device.clear(changed);
  update(kept.positions, changed);
  if (device.download<u32>(changed)[0] != 0 || !known)
    kept.table = row_table(device, kept.positions.reshape({shape.elements()}), rows);
  if (kept_.size() == kMost) kept_.erase(kept_.begin());
  kept_.push_back(kept);
  return kept.table;
}

}  // namespace lockstep::gradients
