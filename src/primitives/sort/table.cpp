// transposed_table: a stable sort of the positions by their index, and the scanned counts of each index.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "primitives/flat.hpp"
#include "primitives/sort/sort.hpp"

namespace lockstep::primitives {

const Kernel& offsets_kernel() {
  static const Kernel k =
      kernel("primitives.table.first",
             [](At<1> at, Grid<u32, 1> starts, Out<i32, 1> first) { first[at] = cast<i32>(starts[at]); });
  return k;
}

Kernel clamp_kernel(Storage index) {
  static Memo<Storage, Kernel> kernels;
  return kernels.get(index, [&] {
    return kernel(fmt::format("primitives.table.keys.{}", name(index)), [=](At<1> at, Parameters& p) {
      const AnyGrid from = p.read("index", index, 1);
      const auto keys = p.write<u32, 1>("keys");
      const Val<u32> value = from.load({at.x}).bitcast(Type::u32).as<u32>();  // a negative one is large
      keys[at] = min(value, p.scalar<u32>("extent"));
    });
  });
}

namespace {
int key_bits(int64_t extent) { return std::max(int(std::bit_width(uint64_t(extent))), 1); }
}  // namespace

IndexTable transposed_table(const Device& device, const Buffer& index, int64_t extent, const Stream& stream) {
  const auto where = "primitives::transposed_table";
  expect_flat(index, where);
  if (index.storage() != Storage::i32 && index.storage() != Storage::u32)
    throw InputError(fmt::format("an index of {}", name(index.storage())), where, "i32 or u32");
  expect_keys(index, where);
  if (extent < 0 || extent >= INT32_MAX)
    throw InputError(fmt::format("an extent of {}", extent), where, "0 to 2^31 - 2");
  const int64_t count = index.elements();
  const IndexTable table{device.allocate<i32>({extent + 1}), device.allocate<i32>({count})};
  const Buffer counts = device.allocate<u32>({extent + 1}), starts = device.allocate<u32>({extent + 1});
  histogram(device, index, counts, stream);
  exclusive_scan(device, counts, starts, stream);
  device.launch_on(stream, offsets_kernel(), {extent + 1}, starts, table.first);

  const Buffer keys = device.allocate<u32>({count}), sorted = device.allocate<u32>({count});
  device.launch_on(stream, clamp_kernel(index.storage()), {count},
                   Arguments().set("index", index.reshape({count})).set("keys", keys).set("extent", extent));
  sort_by_key(device, keys, {}, sorted, table.entries, key_bits(extent), stream);
  return table;
}

int64_t transposed_table_bytes(const Device& device, int64_t count, int64_t extent) {
  return 8 * (extent + 1) + 8 * count + sort_bytes(device, count, true, key_bits(extent));
}

}  // namespace lockstep::primitives
