#include "io/rasters/netcdf/classic_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "io/text/file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr uint64_t kHeaderBlock = 1 << 16;
enum Tag : uint32_t { kAbsent = 0, kDimensions = 10, kVariables = 11, kAttributes = 12 };

/// Big-endian numbers of the header, one after the other; none beyond the file's end.
class Header {
 public:
  Header(const InputFile& file, std::string where) : file_(file), where_(std::move(where)) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(fmt::format("{} in the header at byte {}", what, at_), where_,
                     "an undamaged classic NetCDF file");
  }
  uint64_t left() const { return file_.size() - at_; }
  void skip(uint64_t bytes) {
    if (bytes > left()) fail(fmt::format("{} bytes although {} are left", bytes, left()));
    at_ += bytes;
  }
  uint64_t number(int bytes) {
    if (uint64_t(bytes) > left()) fail("the end of the file");
    uint64_t value = 0;
    for (int k = 0; k < bytes; ++k) value = value << 8 | byte();
    return value;
  }
  void set_version(int version) { wide_ = version == 5, wide_offsets_ = version != 1; }
  /// A count, a length or a number of a dimension: of 64 bits in CDF-5.
  uint64_t count() { return number(wide_ ? 8 : 4); }
  void skip_offset() { skip(wide_offsets_ ? 8 : 4); }

  /// A list's length; each of its entries takes `least` bytes or more.
  uint64_t entries(Tag tag, const char* of, uint64_t least) {
    const auto found = uint32_t(number(4));
    const uint64_t entries = count();
    if (found != tag && (found != kAbsent || entries != 0)) fail(fmt::format("tag {} of {}", found, of));
    if (entries > left() / least) fail(fmt::format("{} {}", entries, of));
    return entries;
  }
  void skip_padded(uint64_t bytes) {
    if (bytes > left()) fail(fmt::format("{} bytes although {} are left", bytes, left()));
    skip((bytes + 3) / 4 * 4);
  }
  void skip_name() {
    const uint64_t length = count();
    if (length == 0 || length > kLongestName) fail(fmt::format("a name of {} bytes", length));
    skip_padded(length);
  }
  uint64_t type_size() {
    constexpr std::array<uint64_t, 12> kSizes{0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8};
    const uint64_t type = number(4);
    if (type < 1 || type > (wide_ ? 11 : 6)) fail(fmt::format("type {}", type));
    return kSizes[type];
  }
  void skip_attributes() {
    for (uint64_t n = entries(kAttributes, "attributes", 12); n > 0; --n) {
      skip_name();
      const uint64_t size = type_size(), values = count();
      if (values > left() / size) fail(fmt::format("{} values of an attribute", values));
      skip_padded(values * size);
    }
  }

 private:
  static constexpr uint64_t kLongestName = 256;

  uint64_t byte() {
    if (at_ < begin_ || at_ >= begin_ + block_.size()) {
      begin_ = at_;
      block_.resize(std::min(kHeaderBlock, left()));
      if (!read_at(file_.descriptor(), begin_, block_)) fail("an unreadable part");
    }
    return uint64_t(block_[at_++ - begin_]);
  }

  const InputFile& file_;
  const std::string where_;
  bool wide_ = false, wide_offsets_ = false;
  uint64_t at_ = 0, begin_ = 0;
  std::vector<std::byte> block_;
};

}  // namespace

void check_classic_netcdf(const std::filesystem::path& path) {
  const InputFile file(path, "a NetCDF file");
  if (!file.is_regular() || file.size() < 4) return;
  Header header(file, path.string());
  const uint64_t magic = header.number(4);
  if (magic >> 8 != 0x434446) return;  // "CDF"
  const int version = int(magic & 255);
  if (version != 1 && version != 2 && version != 5) header.fail(fmt::format("version {}", version));
  header.set_version(version);
  header.count();  // of records; 2^32 - 1 or 2^64 - 1: as many as the file has
  const uint64_t dimensions = header.entries(kDimensions, "dimensions", 12);
  for (uint64_t n = 0; n < dimensions; ++n) {
    header.skip_name();
    header.count();
  }
  header.skip_attributes();
  for (uint64_t n = header.entries(kVariables, "variables", 32); n > 0; --n) {
    header.skip_name();
    const uint64_t rank = header.count();
    if (rank > header.left() / 4 || rank > 1024)
      header.fail(fmt::format("a variable of {} dimensions", rank));
    for (uint64_t k = 0; k < rank; ++k)
      if (const uint64_t number = header.count(); number >= dimensions)
        header.fail(fmt::format("dimension {} of {}", number, dimensions));
    header.skip_attributes();
    header.type_size();
    header.count();  // bytes of the variable, which readers compute again
    header.skip_offset();
  }
}

}  // namespace lockstep::io
