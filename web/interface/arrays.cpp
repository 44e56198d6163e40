// Arrays of a page on the host: those of .npy files, the page's own, and results.
#include "arrays.hpp"

#include <cstring>

#include "io/arrays/npy.hpp"
#include "ir/bindings.hpp"

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

Json read_npz(const Json& request) {
  const std::string name = text(request, "name");
  const std::string_view bytes = page_bytes(request);
  return handles_of(io::parse_npz(std::as_bytes(std::span(bytes)), name));
}

Json take_array(const Json& request) {
  const auto at = [&](const char* from) {
    return Array::adopt(bindings::storage_named(text(request, "type")), wholes(request, "shape", 8), from,
                        nullptr);
  };
  return described(at(page_memory(request, at(nullptr).bytes())).copy());
}

Json read_array(const Json& request) {
  const Array array = arrays().at(member(request, "array")).packed();
  char* const to = page_memory(request, array.bytes());
  std::memcpy(to, array.data(), size_t(array.bytes()));
  return nullptr;
}

}  // namespace

std::map<std::string, Array> named_arrays(const Json& request, const char* name) {
  const Json& given = member(request, name);
  if (!given.is_object()) throw InputError(name, "lockstep.js", "an object of arrays");
  std::map<std::string, Array> named;
  for (const auto& [key, handle] : given.items()) named[key] = arrays().at(handle);
  return named;
}

Json handles_of(std::span<const std::pair<std::string, Array>> named) {
  Json all = Json::object();
  for (const auto& [name, array] : named) all[name] = described(array);
  return all;
}

void add_array_calls(Calls& calls) {
  calls["npy"] = read_npy;
  calls["npz"] = read_npz;
  calls["take_array"] = take_array;
  calls["read_array"] = read_array;
  calls["free_array"] = [](const Json& r) { return arrays().remove(member(r, "array")), Json(); };
}

}  // namespace lockstep::web
