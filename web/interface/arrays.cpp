// Arrays of a page on the host: those of .npy files, and grids of f32.
#include "arrays.hpp"

#include <cstring>

#include "io/arrays/npy.hpp"

namespace lockstep::web {

Handles<Array>& arrays() {
  static Handles<Array> all{"array"};
  return all;
}

namespace {

Json described(Array array) {
  Json answer{{"shape", array.shape()}, {"type", name(array.storage())}};
  answer["handle"] = arrays().add(std::move(array));
  return answer;
}

Json read_npy(const Json& request) {
  const std::string name = text(request, "name");
  const std::string_view bytes = page_bytes(request);
  return described(io::parse_npy(std::as_bytes(std::span(bytes)), name));
}

Json take_grid(const Json& request) {
  const int64_t rows = whole(request, "rows", 1, INT32_MAX),
                cols = whole(request, "cols", 1, INT32_MAX / 4 / rows);
  const char* const from = page_memory(request, 4 * rows * cols);
  std::vector<float> values(size_t(rows * cols));
  std::memcpy(values.data(), from, size_t(4 * rows * cols));
  return described(Array::of(std::move(values), {rows, cols}));
}

}  // namespace

void add_array_calls(Calls& calls) {
  calls["npy"] = read_npy;
  calls["grid"] = take_grid;
  calls["free_array"] = [](const Json& r) { return arrays().remove(member(r, "array")), Json(); };
}

}  // namespace lockstep::web
