#include "io/arrays/idx.hpp"

#include <fmt/format.h>

#include "io/text/parse_file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {

Array parse_idx(std::string_view bytes, std::string_view where) {
  const auto at = [&](size_t k) { return uint8_t(bytes[k]); };
  if (bytes.size() < 4 || at(0) != 0 || at(1) != 0) throw InputError("no IDX header", where, "an IDX file");
  if (at(2) != 8)
    throw InputError(fmt::format("elements of type {}", at(2)), where, "unsigned bytes, type 8");
  const size_t rank = at(3);
  if (rank < 1 || rank > 4 || bytes.size() < 4 + 4 * rank)
    throw InputError(fmt::format("{} axes in {} bytes", rank, bytes.size()), where,
                     "1 to 4 axes with their sizes");
  Sizes shape;
  uint64_t count = 1;
  for (size_t a = 0; a < rank; ++a) {
    uint64_t size = 0;
    for (size_t k = 0; k < 4; ++k) size = size << 8 | at(4 + 4 * a + k);
    if (size == 0 || size > bytes.size())
      throw InputError(fmt::format("axis {} of {}", a, size), where, fmt::format("1 to {}", bytes.size()));
    count *= size;
    if (count > bytes.size()) break;
    shape.push_back(int64_t(size));
  }
  const std::string_view data = bytes.substr(4 + 4 * rank);
  if (count != data.size() || shape.size() != rank)
    throw InputError(fmt::format("{} bytes of elements", data.size()), where,
                     fmt::format("{} or more for the given sizes", count));
  InputClaim claim(double(data.size()), "the array", where);
  return claimed(Array::of(std::vector<uint8_t>(data.begin(), data.end()), shape), std::move(claim));
}

Array read_idx(const std::filesystem::path& path) {
  return parse_packed_file(path, "an IDX file", &parse_idx);
}

}  // namespace lockstep::io
