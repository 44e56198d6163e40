// Reads .npz files: central directory, stored and deflated members, ZIP64.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "io/arrays/npy.hpp"
#include "io/arrays/npz_file.hpp"
#include "io/arrays/zip_records.hpp"
#include "io/text/file.hpp"
#include "io/text/input_memory.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace zip {
namespace {

// Deflate cannot shrink data below about 1/1032, so a larger claim is a lie.
constexpr uint64_t kDeflateRatio = 1032;

// Little-endian words with bounds checks, of bytes in memory or of a file, which is read where it is requested.
class Bytes {
 public:
  Bytes(std::span<const std::byte> bytes, std::string_view where)
      : bytes_(bytes), size_(bytes.size()), where_(where) {}
  Bytes(int file, uint64_t size, std::string_view where) : file_(file), size_(size), where_(where) {}
  [[noreturn]] void fail(std::string_view what) const {
    throw InputError(fmt::format("malformed .npz archive: {}", what), where_, "a ZIP archive of .npy arrays");
  }
  /// Valid until the next call.
  std::span<const std::byte> part(uint64_t at, uint64_t count) const {
    if (at > size_ || count > size_ - at) fail("it is cut off or an offset points outside");
    if (file_ < 0) return bytes_.subspan(at, count);
    if (at < first_ || at + count > first_ + window_.size()) {
      // Directories are read forward, their end record backward.
      const uint64_t around = count < kWindow ? kWindow : 0;
      first_ = at - std::min(at, around);
      window_.resize(std::min(at + count + around, size_) - first_);
      if (!read_at(file_, first_, window_)) fail("it cannot be read, or became shorter");
    }
    return std::span<const std::byte>(window_).subspan(at - first_, count);
  }
  uint64_t word(uint64_t at, int size) const {
    uint64_t value = 0;
    const auto p = part(at, static_cast<uint64_t>(size));
    for (int k = 0; k < size; ++k) value |= static_cast<uint64_t>(p[static_cast<size_t>(k)]) << (8 * k);
    return value;
  }
  uint16_t u16(uint64_t at) const { return static_cast<uint16_t>(word(at, 2)); }
  uint32_t u32(uint64_t at) const { return static_cast<uint32_t>(word(at, 4)); }
  uint64_t u64(uint64_t at) const { return word(at, 8); }
  uint64_t size() const { return size_; }
  /// Reads into memory that is given.
  void copy(uint64_t at, std::span<std::byte> to) const {
    if (at > size_ || to.size() > size_ - at) fail("it is cut off or an offset points outside");
    if (file_ < 0)
      std::memcpy(to.data(), bytes_.data() + at, to.size());
    else if (!read_at(file_, at, to))
      fail("it cannot be read, or became shorter");
  }
  /// Gives back the memory of the last part.
  void forget() const { window_ = {}; }
  bool is_file() const { return file_ >= 0; }
  std::string_view where() const { return where_; }

 private:
  static constexpr uint64_t kWindow = 1 << 15;
  std::span<const std::byte> bytes_;
  int file_ = -1;
  uint64_t size_ = 0;
  std::string_view where_;
  mutable uint64_t first_ = 0;
  mutable std::vector<std::byte> window_;
};

constexpr std::string_view kSuffix = ".npy";

struct Member {
  std::string name;
  uint16_t method = 0;
  uint32_t crc = 0;
  uint64_t packed = 0, unpacked = 0;
  uint64_t offset = 0, data_at = 0;  // of its local header, of its content
  std::string array() const { return name.substr(0, name.size() - kSuffix.size()); }
};

struct Directory {
  uint64_t offset = 0, count = 0;
};

Directory find_directory(const Bytes& in) {
  if (in.size() < 22) in.fail("it is too short");
  const uint64_t last = in.size() - 22;
  for (uint64_t back = 0; back <= std::min<uint64_t>(last, 65535); ++back) {
    const uint64_t at = last - back;
    if (in.u32(at) != kEnd) continue;
    if (in.u16(at + 20) > back) in.fail("its comment is cut off");
    Directory directory{in.u32(at + 16), in.u16(at + 10)};
    if (at >= 20 && in.u32(at - 20) == kEnd64Locator) {
      const uint64_t end64 = in.u64(at - 20 + 8);
      if (in.part(end64, 56).empty() || in.u32(end64) != kEnd64) in.fail("the ZIP64 end record is missing");
      directory = {in.u64(end64 + 48), in.u64(end64 + 32)};
    }
    return directory;
  }
  in.fail("no end record");
}

void apply_zip64(const Bytes& in, uint64_t at, uint64_t end, Member& member) {
  while (at + 4 <= end) {
    const uint16_t id = in.u16(at), size = in.u16(at + 2);
    at += 4;
    if (size > end - at) in.fail("an extra field is too long");
    if (id == kZip64Field) {
      uint64_t field = at;
      for (uint64_t* value : {&member.unpacked, &member.packed, &member.offset}) {
        if (*value != kIn64) continue;
        if (field + 8 > at + size) in.fail("a ZIP64 field is too short");
        *value = in.u64(field);
        field += 8;
      }
      return;
    }
    at += size;
  }
}

/// Inflates until `out` is full or the data ends; returns how many bytes came and zlib's last word.
std::pair<size_t, int> inflate_into(const Bytes& in, std::span<const std::byte> packed,
                                    std::span<std::byte> out) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) in.fail("zlib cannot start");
  size_t from = 0, to = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    const auto chunk = [](size_t left) { return static_cast<uInt>(std::min<size_t>(left, 1u << 30)); };
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + from));
    stream.avail_in = chunk(packed.size() - from);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + to);
    stream.avail_out = chunk(out.size() - to);
    const uInt in_before = stream.avail_in, out_before = stream.avail_out;
    status = inflate(&stream, Z_NO_FLUSH);
    from += in_before - stream.avail_in;
    to += out_before - stream.avail_out;
  }
  inflateEnd(&stream);
  return {to, status};
}

std::vector<std::byte> inflate_member(const Bytes& in, std::span<const std::byte> packed, uint64_t unpacked) {
  std::vector<std::byte> out(unpacked);
  const auto [size, status] = inflate_into(in, packed, out);
  if (status != Z_STREAM_END || size != unpacked) in.fail("a member's compressed data is damaged");
  return out;
}

void check_sizes(const Bytes& in, const Member& member) {
  if (member.method != kDeflated && (member.method != kStored || member.packed != member.unpacked))
    in.fail(fmt::format("member '{}' uses compression method {}", member.name, member.method));
  if (member.unpacked / kDeflateRatio > member.packed + 1)
    in.fail(fmt::format("member '{}' claims an impossible size", member.name));
}

std::string place_of(const Bytes& in, const Member& member) {
  return fmt::format("{}: {}", in.where(), member.name);
}

[[noreturn]] void fail_checksum(const Bytes& in, const Member& member) {
  in.fail(fmt::format("member '{}' has a wrong checksum", member.name));
}

/// The array of a member, with its share of the budget.
Array read_member(const Bytes& in, const Member& member) {
  check_sizes(in, member);
  const std::string what = fmt::format("member '{}'", member.name);
  InputClaim array_claim(static_cast<double>(member.unpacked), what, in.where());
  const InputClaim meanwhile(static_cast<double>(in.is_file() ? member.packed : 0) +
                                 static_cast<double>(member.method == kDeflated ? member.unpacked : 0),
                             what, in.where());
  std::span<const std::byte> content = in.part(member.data_at, member.packed);
  std::vector<std::byte> inflated;
  if (member.method == kDeflated) content = inflated = inflate_member(in, content, member.unpacked);
  if (crc_of(content) != member.crc) fail_checksum(in, member);
  const Array array = parse_npy(content, place_of(in, member));
  in.forget();
  return claimed(array, std::move(array_claim));
}

/// Reads no more of the member than its header may take.
NpyHeader header_of(const Bytes& in, const Member& member) {
  constexpr uint64_t kLongest = 1 << 16;  // of plain types; packed it is hardly longer
  check_sizes(in, member);
  std::span<const std::byte> content =
      in.part(member.data_at, std::min(member.packed, member.method == kDeflated ? 2 * kLongest : kLongest));
  std::vector<std::byte> inflated;
  if (member.method == kDeflated) {
    inflated.resize(std::min(member.unpacked, kLongest));
    inflated.resize(inflate_into(in, content, inflated).first);
    content = inflated;
  }
  return parse_npy_header(content, place_of(in, member));
}

/// Where a member's array is as in memory.
std::optional<StoredArray> place_of_stored(const Bytes& in, const Member& member) {
  if (member.method != kStored || member.packed != member.unpacked) return std::nullopt;
  const NpyHeader header = header_of(in, member);
  if (header.swapped || header.fortran_order) return std::nullopt;
  return StoredArray{header, member.data_at + header.data_offset, member.packed - header.data_offset};
}

/// Members in .npy, in the order of the directory; the claim grows with them.
std::vector<Member> read_directory(const Bytes& in, InputClaim& claim) {
  const Directory directory = find_directory(in);
  uint64_t at = directory.offset, packed_sum = 0;
  std::vector<Member> members;
  std::set<std::string> seen;
  size_t bytes = 0;
  for (uint64_t k = 0; k < directory.count; ++k) {
    if (in.part(at, 46).empty() || in.u32(at) != kCentralHeader) in.fail("the directory is damaged");
    Member member;
    member.method = in.u16(at + 10);
    member.crc = in.u32(at + 16);
    member.packed = in.u32(at + 20);
    member.unpacked = in.u32(at + 24);
    member.offset = in.u32(at + 42);
    const uint64_t name_size = in.u16(at + 28), extra_size = in.u16(at + 30), comment_size = in.u16(at + 32);
    const auto name_bytes = in.part(at + 46, name_size);
    member.name.assign(reinterpret_cast<const char*>(name_bytes.data()), name_bytes.size());
    if (in.u16(at + 8) & 1) in.fail(fmt::format("member '{}' is encrypted", member.name));
    apply_zip64(in, at + 46 + name_size, at + 46 + name_size + extra_size, member);
    at += 46 + name_size + extra_size + comment_size;

    if (in.part(member.offset, 30).empty() || in.u32(member.offset) != kLocalHeader) {
      in.fail(fmt::format("member '{}' has no local header", member.name));
    }
    member.data_at = member.offset + 30 + in.u16(member.offset + 26) + in.u16(member.offset + 28);
    if (member.data_at > in.size() || member.packed > in.size() - member.data_at)
      in.fail("it is cut off or an offset points outside");
    packed_sum += member.packed;
    if (packed_sum > in.size()) in.fail("members overlap");
    if (!member.name.ends_with(kSuffix)) continue;
    if (!seen.insert(member.name).second) in.fail(fmt::format("two members are named '{}'", member.array()));
    constexpr size_t kNode = 96;  // of the set
    bytes += sizeof(Member) + kNode + 2 * member.name.size();
    claim.reach(bytes, "the directory", in.where());
    members.push_back(std::move(member));
  }
  return members;
}

/// Of a member that is not held: part by part.
uint32_t crc_in_file(const Bytes& in, uint64_t at, uint64_t size) {
  constexpr uint64_t kPart = 1 << 20;
  uint32_t crc = static_cast<uint32_t>(crc32(0, nullptr, 0));
  for (uint64_t done = 0; done < size; done += kPart)
    crc = crc_of(in.part(at + done, std::min(kPart, size - done)), crc);
  return crc;
}

}  // namespace
}  // namespace zip

struct NpzFile::Impl {
  Impl(const std::filesystem::path& path) : where(path.string()) {
    within_memory(where, [&] {
      file.emplace(path, "an .npz file");
      if (file->is_regular()) {
        in.emplace(file->descriptor(), file->size(), where);
      } else {  // a pipe has no positions to return to
        held = read_file(path, "an .npz file");
        claim = InputClaim(static_cast<double>(held.size()), "the file", where);
        in.emplace(held, where);
      }
      members = zip::read_directory(*in, directory_claim);
    });
  }
  Impl(std::span<const std::byte> bytes, std::string_view name) : where(name) {
    within_memory(where, [&] {
      in.emplace(bytes, where);
      members = zip::read_directory(*in, directory_claim);
    });
  }
  const zip::Member* find(std::string_view name) const {
    for (const zip::Member& member : members)
      if (member.name.size() == name.size() + zip::kSuffix.size() && member.name.starts_with(name))
        return &member;
    return nullptr;
  }
  const zip::Member& get(std::string_view name) const {
    const zip::Member* member = find(name);
    if (!member) throw_missing(name, names(), where);
    return *member;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const zip::Member& member : members) all.push_back(member.array());
    return all;
  }

  std::string where;
  std::optional<InputFile> file;
  std::vector<std::byte> held;
  InputClaim claim, directory_claim;
  std::optional<zip::Bytes> in;
  std::vector<zip::Member> members;
};

NpzFile::NpzFile(const std::filesystem::path& path) : impl_(std::make_unique<Impl>(path)) {}
NpzFile::NpzFile(std::span<const std::byte> bytes, std::string_view where)
    : impl_(std::make_unique<Impl>(bytes, where)) {}
NpzFile::~NpzFile() = default;

const std::string& NpzFile::where() const { return impl_->where; }
std::vector<std::string> NpzFile::names() const { return impl_->names(); }
bool NpzFile::has(std::string_view name) const { return impl_->find(name); }

NpyHeader NpzFile::header(std::string_view name) const {
  return within_memory(where(), [&] { return zip::header_of(*impl_->in, impl_->get(name)); });
}

Array NpzFile::read(std::string_view name, const ArrayLimits& limits) const {
  const auto expect = [&](Storage storage, const Sizes& shape) {
    if (const std::string expected = limits.broken_by(storage, shape); !expected.empty())
      throw InputError(fmt::format("array '{}' of {} {}", name, lockstep::name(storage), to_string(shape)),
                       where(), expected);
  };
  return within_memory(where(), [&] {
    const zip::Member& member = impl_->get(name);
    const NpyHeader header = zip::header_of(*impl_->in, member);
    expect(header.storage, header.shape);
    Array array = zip::read_member(*impl_->in, member);
    expect(array.storage(), array.shape());  // the file may have changed meanwhile
    return array;
  });
}

std::optional<StoredArray> NpzFile::find_stored(std::string_view name) const {
  return within_memory(where(), [&]() -> std::optional<StoredArray> {
    const zip::Bytes& in = *impl_->in;
    const zip::Member* member = impl_->find(name);
    if (!in.is_file() || !member) return std::nullopt;
    const auto place = zip::place_of_stored(in, *member);
    if (place && zip::crc_in_file(in, member->data_at, member->packed) != member->crc)
      zip::fail_checksum(in, *member);
    return place;
  });
}

uint32_t NpzFile::checksum(std::string_view name) const { return impl_->get(name).crc; }

std::optional<Array> NpzFile::read_slices(std::string_view name, size_t axis,
                                          std::span<const int64_t> positions) const {
  return within_memory(where(), [&]() -> std::optional<Array> {
    const zip::Bytes& in = *impl_->in;
    const zip::Member& member = impl_->get(name);
    const auto place = zip::place_of_stored(in, member);
    if (!place) return std::nullopt;
    uint64_t rows = 1, count = 1, bytes = uint64_t(size_of(place->header.storage));
    Sizes shape = place->header.shape;
    for (size_t k = 0; k < shape.size(); ++k)
      (k < axis ? rows : k == axis ? count : bytes) *= uint64_t(shape[k]);
    if (place->bytes != rows * count * bytes)
      in.fail(fmt::format("member '{}' has another size than its array", member.name));
    shape[axis] = int64_t(positions.size());
    InputClaim claim(double(rows) * double(positions.size()) * double(bytes),
                     fmt::format("member '{}'", member.name), in.where());
    Array part(place->header.storage, shape);
    std::span<std::byte> to = part.mutate_raw();
    for (uint64_t row = 0; row < rows; ++row)
      for (const int64_t position : positions) {
        in.copy(place->offset + (row * count + uint64_t(position)) * bytes, to.first(bytes));
        to = to.subspan(bytes);
      }
    return claimed(part, std::move(claim));
  });
}

PartChecksum checksum_of(std::span<const std::byte> bytes) { return {zip::crc_of(bytes), bytes.size()}; }

void NpzFile::verify(std::string_view name, std::span<const PartChecksum> parts) const {
  within_memory(where(), [&] {
    const zip::Bytes& in = *impl_->in;
    const zip::Member& member = impl_->get(name);
    const auto place = zip::place_of_stored(in, member);
    uLong crc = zip::crc_of(in.part(member.data_at, place ? place->header.data_offset : 0));
    for (const PartChecksum& part : parts) crc = crc32_combine(crc, part.crc, z_off_t(part.bytes));
    if (!place || crc != member.crc) zip::fail_checksum(in, member);
  });
}

NpzArrays NpzFile::read_all(const std::vector<std::string>& names) const {
  return within_memory(where(), [&] {
    NpzArrays arrays;
    for (const zip::Member& member : impl_->members) {
      const std::string name = member.array();
      if (!names.empty() && std::find(names.begin(), names.end(), name) == names.end()) {
        arrays.unread.push_back(name);
        continue;
      }
      try {
        arrays.emplace_back(name, zip::read_member(*impl_->in, member));
      } catch (const NpyTypeError& e) { arrays.left_out.emplace_back(name, e.problem()); }
    }
    return arrays;
  });
}

std::string ArrayLimits::broken_by(Storage found, const Sizes& shape) const {
  const bool good = (!storage || *storage == found) &&
                    (sizes.empty() ? rank < 0 || rank == int(shape.size())
                                   : std::equal(
                                         sizes.begin(), sizes.end(), shape.begin(), shape.end(),
                                         [](int64_t a, int64_t b) { return a < 0 || a == b; }));
  double elements = 1;
  for (const int64_t n : shape) elements *= double(n);
  if (good && elements <= double(most)) return {};
  std::string text = storage ? std::string(name(*storage)) : "numbers";
  if (!sizes.empty()) {
    std::vector<std::string> all;
    for (const int64_t n : sizes) all.push_back(n < 0 ? "any" : fmt::format("{}", n));
    text += fmt::format(" of shape ({})", fmt::join(all, ", "));
  } else if (rank >= 0) {
    text += fmt::format(" of {} {}", rank, rank == 1 ? "axis" : "axes");
  }
  if (most < INT64_MAX) text += fmt::format(", at most {} of them", most);
  return text;
}

NpzArrays parse_npz(std::span<const std::byte> bytes, std::string_view where) {
  return NpzFile(bytes, where).read_all();
}

NpzArrays read_npz(const std::filesystem::path& path, const std::vector<std::string>& names) {
  return NpzFile(path).read_all(names);
}

void throw_missing(std::string_view name, std::vector<std::string> present, std::string_view where) {
  constexpr size_t kShownNames = 20;
  if (present.size() > kShownNames) {
    present.resize(kShownNames);
    present.push_back("…");
  }
  const std::string known = fmt::format("{}", fmt::join(present, ", "));
  throw InputError(fmt::format("array '{}' is missing", name), where,
                   fmt::format("it among those present ({})", known.empty() ? "none" : known));
}

const Array& find_array(const NpzArrays& arrays, std::string_view name, std::string_view where) {
  for (const auto& [array_name, reason] : arrays.left_out)
    if (array_name == name)
      throw InputError(fmt::format("array '{}': {}", name, reason), where, "an array of numbers");
  std::vector<std::string> names;
  for (const auto& [array_name, array] : arrays) {
    if (array_name == name) return array;
    names.push_back(array_name);
  }
  names.insert(names.end(), arrays.unread.begin(), arrays.unread.end());
  throw_missing(name, std::move(names), where);
}

}  // namespace lockstep::io
