#include "primitives/flat.hpp"

#include <fmt/format.h>

#include <atomic>
#include <vector>

namespace lockstep::primitives {

namespace {
std::atomic<int64_t> row_elements{int64_t(1) << 30};
}

int64_t flat_row() { return row_elements; }
void set_flat_row(int64_t elements) { row_elements = elements; }

Buffer view(const Buffer& buffer, int64_t first, const Shape& shape) {
  return buffer.reshape({buffer.elements()}).window({first}, {shape.elements()}).reshape(shape);
}

void expect_flat(const Buffer& buffer, Storage storage, int64_t elements, std::string_view where) {
  const auto fail = [&](const std::string& what, const std::string& expected) {
    throw InputError(what, where, expected);
  };
  if (!buffer) fail("an empty buffer", "a buffer of a device");
  if (buffer.storage() != storage)
    fail(fmt::format("a buffer of {}", name(buffer.storage())), fmt::format("{}", name(storage)));
  if (buffer.elements() != elements)
    fail(fmt::format("{} elements", buffer.elements()), fmt::format("{}", elements));
  if (!buffer.contiguous()) fail("a window with gaps", "a contiguous buffer");
}

void expect_apart(std::initializer_list<Buffer> written, std::initializer_list<Buffer> read,
                  std::string_view where) {
  std::vector<Buffer> all(written);
  all.insert(all.end(), read);
  for (size_t k = 0; k < written.size(); ++k)
    for (size_t other = k + 1; other < all.size(); ++other) {
      const uint64_t a = all[k].native(), b = all[other].native();
      if (a && b && a < b + uint64_t(all[other].bytes()) && b < a + uint64_t(all[k].bytes()))
        throw InputError("a written buffer shares memory with another one", where,
                         "buffers without common elements");
    }
}

}  // namespace lockstep::primitives
