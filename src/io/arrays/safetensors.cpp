#include "io/arrays/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "io/text/file.hpp"

namespace lockstep::io {

namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kMostHeader = 100'000'000;  // of the format's own reader

struct Tensor {
  std::string name, type;
  Sizes shape;
  uint64_t begin = 0, end = 0;
};

std::optional<Storage> storage_of(const std::string& type) {
  static const std::pair<const char*, Storage> kTypes[] = {
      {"F64", Storage::f64},     {"F32", Storage::f32}, {"F16", Storage::f16}, {"BF16", Storage::bf16},
      {"I64", Storage::i64},     {"I32", Storage::i32}, {"I16", Storage::i16}, {"I8", Storage::i8},
      {"U64", Storage::u64},     {"U32", Storage::u32}, {"U16", Storage::u16}, {"U8", Storage::u8},
      {"BOOL", Storage::boolean}};
  for (const auto& [name, storage] : kTypes)
    if (type == name) return storage;
  return std::nullopt;
}

class SafetensorsParser {
 public:
  SafetensorsParser(std::span<const std::byte> bytes, std::string_view where)
      : bytes_(bytes), where_(where) {}

  NpzArrays parse() {
    std::vector<Tensor> tensors = header();
    std::stable_sort(tensors.begin(), tensors.end(),
                     [](const Tensor& a, const Tensor& b) { return a.begin < b.begin; });
    uint64_t before = 0;
    NpzArrays arrays;
    for (const Tensor& t : tensors) {
      if (t.begin != before)
        refuse(fmt::format("data of '{}' begins at {}", t.name, t.begin), fmt::format("{}", before));
      before = t.end;
      add(t, arrays);
    }
    if (before != data_.size())
      refuse(fmt::format("{} bytes of data for tensors of {}", data_.size(), before),
             "as many as the header says");
    return arrays;
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& expected) const {
    throw InputError(what, std::string(where_), expected);
  }

  std::vector<Tensor> header() {
    if (bytes_.size() < 8) refuse(fmt::format("{} bytes", bytes_.size()), "a .safetensors file");
    uint64_t length = 0;
    for (int k = 7; k >= 0; --k) length = length << 8 | uint64_t(bytes_[size_t(k)]);
    if (length > kMostHeader || length > bytes_.size() - 8)
      refuse(fmt::format("a header of {} bytes in a file of {}", length, bytes_.size()),
             "a .safetensors file");
    data_ = bytes_.subspan(8 + size_t(length));
    const char* const text = reinterpret_cast<const char*>(bytes_.data()) + 8;
    bool twice = false;
    std::vector<std::string> names;
    const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
      if (event == Json::parse_event_t::key && depth == 1) {
        const std::string name = value.get<std::string>();
        twice |= std::find(names.begin(), names.end(), name) != names.end();
        names.push_back(name);
      }
      return true;
    };
    const Json document = Json::parse(text, text + length, watch, false);
    if (!document.is_object()) refuse("a header that is not a JSON object", "a .safetensors file");
    if (twice) refuse("a name that stands twice in the header", "each once");
    std::vector<Tensor> tensors;
    for (const auto& [name, entry] : document.items())
      if (name != "__metadata__") tensors.push_back(tensor(name, entry));
    return tensors;
  }

  uint64_t number(const Json& value, const std::string& name) const {
    if (!value.is_number_unsigned())
      refuse(fmt::format("a bad number in '{}'", name), "whole numbers from 0");
    return value.get<uint64_t>();
  }

  Tensor tensor(const std::string& name, const Json& entry) const {
    if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") ||
        !entry.contains("data_offsets") || !entry["dtype"].is_string() || !entry["shape"].is_array() ||
        !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2)
      refuse(fmt::format("entry '{}'", name), "dtype, shape and data_offsets");
    Tensor t{name, entry["dtype"].get<std::string>(), {}, 0, 0};
    for (const Json& size : entry["shape"]) {
      const uint64_t n = number(size, name);
      if (n > uint64_t(std::numeric_limits<int64_t>::max()))
        refuse(fmt::format("a size in '{}'", name), "below 2^63");
      t.shape.push_back(int64_t(n));
    }
    t.begin = number(entry["data_offsets"][0], name), t.end = number(entry["data_offsets"][1], name);
    if (t.begin > t.end || t.end > data_.size())
      refuse(fmt::format("data of '{}' from {} to {}", name, t.begin, t.end),
             fmt::format("a range inside of {} bytes", data_.size()));
    return t;
  }

  void add(const Tensor& t, NpzArrays& arrays) const {
    const std::optional<Storage> storage = storage_of(t.type);
    if (!storage) {
      arrays.left_out.emplace_back(t.name, "elements of type " + t.type);
      return;
    }
    // Sizes are compared with the data before they are multiplied further: nothing overflows.
    const uint64_t word = uint64_t(size_of(*storage)), most = (t.end - t.begin) / word;
    bool none = false;
    for (const int64_t n : t.shape) none |= n == 0;
    uint64_t count = none ? 0 : 1;
    for (const int64_t n : t.shape) {
      if (none) break;
      if (uint64_t(n) > most / count)
        refuse(fmt::format("shape of '{}' beyond its {} bytes", t.name, t.end - t.begin), "both alike");
      count *= uint64_t(n);
    }
    if (count * word != t.end - t.begin)
      refuse(fmt::format("'{}' of {} elements of {} in {} bytes", t.name, count, t.type, t.end - t.begin),
             fmt::format("{} bytes", count * word));
    arrays.emplace_back(t.name, array(*storage, t));
  }

  Array array(Storage storage, const Tensor& t) const {
    const std::span<const std::byte> data = data_.subspan(size_t(t.begin), size_t(t.end - t.begin));
    // The data need not be aligned in the file: the copy is.
    const auto words = std::make_shared<std::vector<uint64_t>>((data.size() + 7) / 8 + 1);
    if (!data.empty()) std::memcpy(words->data(), data.data(), data.size());
    if (storage == Storage::boolean)
      for (const std::byte b : data)
        if (b > std::byte{1}) refuse(fmt::format("a truth value of {} in '{}'", int(b), t.name), "0 or 1");
    return Array::adopt(storage, t.shape, words->data(), words);
  }

  std::span<const std::byte> bytes_, data_;
  std::string_view where_;
};

}  // namespace

NpzArrays parse_safetensors(std::span<const std::byte> bytes, std::string_view where) {
  return SafetensorsParser(bytes, where).parse();
}

NpzArrays read_safetensors(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = read_file(path, "a .safetensors file");
  return parse_safetensors(bytes, path.string());
}

}  // namespace lockstep::io
