// Transposed tables of index arrays, kept from launch to launch.
#pragma once

#include <functional>
#include <vector>

#include "autodiff/kernels/sums/row_sum.hpp"
#include "core/platform/threads.hpp"

namespace lockstep::gradients {

/// A table is used again where every lane reads where it did when the table was made: each launch compares all positions,
/// since nothing else shows that nobody wrote to an index array.
class KeptTables {
 public:
  /// Of one gathered buffer of one launch: shapes and addresses that tell index arrays apart, so that launches that
  /// alternate between a few of them have a table each.
  using Key = std::vector<int64_t>;
  /// Launches a kernel of emit_positions().
  using Update = std::function<void(const Buffer& positions, const Buffer& changed)>;

  /// `shape` is that of the positions: reads, lanes. Waits for the device.
  RowTable table(const Device& device, const Key& key, const Shape& shape, int64_t rows,
                 const Update& update);
  /// Bytes that are kept for one table.
  static int64_t bytes(const Shape& shape, int64_t rows) {
    return shape.elements() * 4 + row_table_bytes(shape.elements(), rows);
  }

 private:
  static constexpr size_t kMost = 8;
  struct Kept {
    Device device;
    Key key;
    Buffer positions;
    RowTable table;
  };
  Mutex mutex_;
  std::vector<Kept> kept_;  // latest last
};

}  // namespace lockstep::gradients
