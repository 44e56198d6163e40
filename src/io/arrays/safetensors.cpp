#include "io/arrays/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "io/text/file.hpp"
#include "io/text/input_memory.hpp"
#include "io/text/json_text.hpp"
#include "io/text/text_scanner.hpp"

namespace lockstep::io {

namespace {

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

/// Where the bytes of a file come from: memory, or the file itself, of which only what is needed is read.
class Source {
 public:
  Source(std::span<const std::byte> bytes, std::string_view where)
      : bytes_(bytes), size_(bytes.size()), where_(where) {}
  Source(int file, uint64_t size, std::string_view where) : file_(file), size_(size), where_(where) {}
  uint64_t size() const { return size_; }
  std::string_view where() const { return where_; }
  void get(uint64_t at, std::span<std::byte> to) const {
    if (file_ < 0)
      std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(at), to.size(), to.begin());
    else if (!read_at(file_, at, to))
      refuse("a file that cannot be read, or became shorter", "a .safetensors file");
  }
  [[noreturn]] void refuse(const std::string& what, const std::string& expected) const {
    throw InputError(what, std::string(where_), expected);
  }

 private:
  std::span<const std::byte> bytes_;
  int file_ = -1;
  uint64_t size_ = 0;
  std::string_view where_;
};

class SafetensorsParser {
 public:
  explicit SafetensorsParser(const Source& in) : in_(in) {}

  /// All tensors, or those of the names.
  NpzArrays parse(const std::vector<std::string>& names) {
    std::vector<Tensor> tensors = header();
    std::stable_sort(tensors.begin(), tensors.end(),
                     [](const Tensor& a, const Tensor& b) { return a.begin < b.begin; });
    uint64_t before = 0;
    for (const Tensor& t : tensors) {
      if (t.begin != before)
        in_.refuse(fmt::format("data of '{}' begins at {}", shown(t.name), t.begin),
                   fmt::format("{}", before));
      before = t.end;
    }
    if (before != data_size_)
      in_.refuse(fmt::format("{} bytes of data for tensors of {}", data_size_, before),
                 "as many as the header says");
    NpzArrays arrays;
    for (const Tensor& t : tensors) add(t, names, arrays);
    return arrays;
  }

 private:
  std::vector<Tensor> header() {
    const uint64_t size = in_.size();
    if (size < 8) in_.refuse(fmt::format("{} bytes", size), "a .safetensors file");
    std::array<std::byte, 8> word;
    in_.get(0, word);
    uint64_t length = 0;
    for (size_t k = 8; k-- > 0;) length = length << 8 | uint64_t(word[k]);
    if (length > kMostHeader || length > size - 8)
      in_.refuse(fmt::format("a header of {} bytes in a file of {}", length, size), "a .safetensors file");
    data_begin_ = 8 + length;
    data_size_ = size - data_begin_;
    const InputClaim claim(static_cast<double>(length), "its header", in_.where());
    std::string text(length, '\0');
    in_.get(8, std::as_writable_bytes(std::span(text)));
    std::vector<Tensor> tensors;
    for (const auto& [name, entry] : JsonValue::parse(text, in_.where()).members())
      if (name != "__metadata__") tensors.push_back(tensor(name, entry));
    return tensors;
  }

  Tensor tensor(const std::string& name, const JsonValue& entry) const {
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    Tensor t{name, entry.at("dtype").text(), {}, 0, 0};
    for (const JsonValue& size : entry.at("shape").items()) t.shape.push_back(size.integer(0, kMost));
    const JsonValue offsets = entry.at("data_offsets");
    const std::vector<JsonValue> ends = offsets.items(2);
    if (ends.size() != 2) offsets.fail(fmt::format("has {} items", ends.size()), "2");
    t.begin = ends[0].bits(), t.end = ends[1].bits();
    if (t.begin > t.end || t.end > data_size_)
      in_.refuse(fmt::format("data of '{}' from {} to {}", shown(name), t.begin, t.end),
                 fmt::format("a range inside of {} bytes", data_size_));
    return t;
  }

  void add(const Tensor& t, const std::vector<std::string>& names, NpzArrays& arrays) const {
    const std::optional<Storage> storage = storage_of(t.type);
    if (!storage) {
      arrays.left_out.emplace_back(t.name, "elements of type " + shown(t.type));
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
        in_.refuse(fmt::format("shape of '{}' beyond its {} bytes", shown(t.name), t.end - t.begin),
                   "both alike");
      count *= uint64_t(n);
    }
    if (count * word != t.end - t.begin)
      in_.refuse(
          fmt::format("'{}' of {} elements of {} in {} bytes", shown(t.name), count, t.type, t.end - t.begin),
          fmt::format("{} bytes", count * word));
    if (!names.empty() && std::find(names.begin(), names.end(), t.name) == names.end())
      arrays.unread.push_back(t.name);
    else
      arrays.emplace_back(t.name, array(*storage, t));
  }

  Array array(Storage storage, const Tensor& t) const {
    const size_t size = size_t(t.end - t.begin);
    InputClaim claim(static_cast<double>(size), fmt::format("tensor '{}'", shown(t.name)), in_.where());
    // The data need not be aligned in the file: the copy is.
    const auto words = std::make_shared<std::vector<uint64_t>>((size + 7) / 8 + 1);
    const auto data = std::as_writable_bytes(std::span(*words)).first(size);
    in_.get(data_begin_ + t.begin, data);
    if (storage == Storage::boolean)
      for (const std::byte b : data)
        if (b > std::byte{1})
          in_.refuse(fmt::format("a truth value of {} in '{}'", int(b), shown(t.name)), "0 or 1");
    return claimed(Array::adopt(storage, t.shape, words->data(), words), std::move(claim));
  }

  const Source in_;
  uint64_t data_begin_ = 0, data_size_ = 0;
};

}  // namespace

NpzArrays parse_safetensors(std::span<const std::byte> bytes, std::string_view where) {
  return SafetensorsParser(Source(bytes, where)).parse({});
}

NpzArrays read_safetensors(const std::filesystem::path& path, const std::vector<std::string>& names) {
  const std::string where = path.string();
  return within_memory(where, [&] {
    const InputFile file(path, "a .safetensors file");
    if (file.is_regular())
      return SafetensorsParser(Source(file.descriptor(), file.size(), where)).parse(names);
    const std::vector<std::byte> bytes = read_file(path, "a .safetensors file");  // a pipe is read in order
    return SafetensorsParser(Source(bytes, where)).parse(names);
  });
}

}  // namespace lockstep::io
