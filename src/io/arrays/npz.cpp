// The ZIP container of .npz files: central directory, stored and deflated members, ZIP64.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <set>

#include "core/files/atomic_file.hpp"
#include "io/arrays/npy.hpp"
#include "io/arrays/zip.hpp"
#include "io/text/file.hpp"
#include "io/text/input_memory.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr uint16_t kStored = 0, kDeflated = 8, kZip64Field = 1;
constexpr uint64_t kIn64 = 0xffffffffu;
// Deflate cannot shrink data below about 1/1032, so a larger claim is a lie.
constexpr uint64_t kDeflateRatio = 1032;

// Little-endian words with bounds checks, of bytes in memory or of a file, which is read where it is asked for.
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

struct Member {
  std::string name;
  uint16_t method = 0;
  uint32_t crc = 0;
  uint64_t packed = 0, unpacked = 0, offset = 0;
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

std::vector<std::byte> inflate_member(const Bytes& in, std::span<const std::byte> packed, uint64_t unpacked) {
  std::vector<std::byte> out(unpacked);
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
  if (status != Z_STREAM_END || to != unpacked) in.fail("a member's compressed data is damaged");
  return out;
}

/// Goes on from the checksum of the bytes before.
uint32_t crc_of(std::span<const std::byte> bytes, uLong crc = crc32(0, nullptr, 0)) {
  while (!bytes.empty()) {
    const auto chunk = bytes.first(std::min<size_t>(bytes.size(), 1u << 30));
    crc = crc32(crc, reinterpret_cast<const Bytef*>(chunk.data()), static_cast<uInt>(chunk.size()));
    bytes = bytes.subspan(chunk.size());
  }
  return static_cast<uint32_t>(crc);
}

void append(std::string& out, uint64_t value, int size) {
  for (int k = 0; k < size; ++k) out += static_cast<char>(value >> (8 * k) & 255);
}
constexpr uint16_t kVersion = 45;

/// Fields of both headers of a member. Sizes and offset always stand in the ZIP64 fields, as NumPy writes them.
void append_common(std::string& out, const Member& member) {
  constexpr uint16_t kDate1980 = 0x21;
  append(out, kVersion, 2);
  append(out, 0, 2);
  append(out, member.method, 2);
  append(out, 0, 2);
  append(out, kDate1980, 2);
  append(out, member.crc, 4);
  append(out, kIn64, 4);
  append(out, kIn64, 4);
  append(out, member.name.size(), 2);
}
std::string local_header(const Member& member) {
  std::string out;
  append(out, kLocalHeader, 4);
  append_common(out, member);
  append(out, 20, 2);
  out += member.name;
  append(out, kZip64Field, 2);
  append(out, 16, 2);
  append(out, member.unpacked, 8);
  append(out, member.packed, 8);
  return out;
}
std::string central_header(const Member& member) {
  std::string out;
  append(out, kCentralHeader, 4);
  append(out, kVersion | 3 << 8, 2);  // Made on Unix.
  append_common(out, member);
  append(out, 28, 2);
  append(out, 0, 2);
  append(out, 0, 2);
  append(out, 0, 2);
  append(out, 0100644u << 16, 4);
  append(out, kIn64, 4);
  out += member.name;
  append(out, kZip64Field, 2);
  append(out, 24, 2);
  append(out, member.unpacked, 8);
  append(out, member.packed, 8);
  append(out, member.offset, 8);
  return out;
}
/// The end of an archive: the records behind a directory of so many members and bytes at `at`.
std::string end_records(uint64_t members, uint64_t bytes, uint64_t at) {
  std::string out;
  if (members == 0) {
    // Readers know an archive by its first bytes, and one without members by the plain end record.
    append(out, kEnd, 4);
    out.append(18, '\0');
    return out;
  }
  append(out, kEnd64, 4);
  append(out, 44, 8);
  append(out, kVersion, 2);
  append(out, kVersion, 2);
  append(out, 0, 4);
  append(out, 0, 4);
  append(out, members, 8);
  append(out, members, 8);
  append(out, bytes, 8);
  append(out, at, 8);
  append(out, kEnd64Locator, 4);
  append(out, 0, 4);
  append(out, at + bytes, 8);
  append(out, 1, 4);
  append(out, kEnd, 4);
  append(out, 0, 4);
  append(out, 0xffff, 2);
  append(out, 0xffff, 2);
  append(out, kIn64, 4);
  append(out, kIn64, 4);
  append(out, 0, 2);
  return out;
}

/// A member's deflated content, kept in a file until it is whole: the archive states its size first.
class DeflatedMember {
 public:
  explicit DeflatedMember(const std::filesystem::path& archive) : where_(archive.string()), file_(archive) {
    if (deflateInit2(&stream_, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      throw InternalError("zlib cannot start", "write_npz", "memory for a deflate stream");
  }
  ~DeflatedMember() { deflateEnd(&stream_); }
  DeflatedMember(const DeflatedMember&) = delete;
  DeflatedMember& operator=(const DeflatedMember&) = delete;

  void add(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto chunk = bytes.first(std::min<size_t>(bytes.size(), 1u << 30));
      run(chunk, Z_NO_FLUSH);
      bytes = bytes.subspan(chunk.size());
    }
  }
  void finish() { run({}, Z_FINISH); }
  uint64_t size() const { return size_; }
  void copy_to(AtomicFile& archive) {
    for (uint64_t left = size_; left > 0;) {
      const auto part = std::span(buffer_).first(std::min<uint64_t>(left, buffer_.size()));
      require(read_at(file_.descriptor(), size_ - left, part));
      archive.write(part);
      left -= part.size();
    }
  }

 private:
  void run(std::span<const std::byte> bytes, int flush) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
      stream_.avail_out = static_cast<uInt>(buffer_.size());
      deflate(&stream_, flush);
      const size_t made = buffer_.size() - stream_.avail_out;
      require(write_at(file_.descriptor(), size_, std::span(buffer_).first(made)));
      size_ += made;
    } while (stream_.avail_out == 0);
  }
  void require(bool done) const {
    if (!done) throw InputError("cannot write the file", where_, "a folder that can be written and has room");
  }
  std::string where_;
  ScratchFile file_;
  z_stream stream_{};
  uint64_t size_ = 0;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(1 << 18);
};

}  // namespace

namespace {

/// The array of a member, with its share of the budget.
Array read_member(const Bytes& in, const Member& member, uint64_t at) {
  if (member.method != kDeflated && (member.method != kStored || member.packed != member.unpacked))
    in.fail(fmt::format("member '{}' uses compression method {}", member.name, member.method));
  if (member.unpacked / kDeflateRatio > member.packed + 1) in.fail("a member claims an impossible size");
  const std::string what = fmt::format("member '{}'", member.name);
  InputClaim array_claim(static_cast<double>(member.unpacked), what, in.where());
  const InputClaim meanwhile(static_cast<double>(in.is_file() ? member.packed : 0) +
                                 static_cast<double>(member.method == kDeflated ? member.unpacked : 0),
                             what, in.where());
  std::span<const std::byte> content = in.part(at, member.packed);
  std::vector<std::byte> inflated;
  if (member.method == kDeflated) content = inflated = inflate_member(in, content, member.unpacked);
  if (crc_of(content) != member.crc) in.fail(fmt::format("member '{}' has a wrong checksum", member.name));
  return claimed(parse_npy(content, fmt::format("{}: {}", in.where(), member.name)), std::move(array_claim));
}

/// `take(member, name, offset of its data)` for each array of the directory.
template <class Take>
void for_each_array(const Bytes& in, const Take& take) {
  const Directory directory = find_directory(in);
  uint64_t at = directory.offset, packed_sum = 0;
  std::set<std::string> seen;
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
    const uint64_t data_at = member.offset + 30 + in.u16(member.offset + 26) + in.u16(member.offset + 28);
    if (data_at > in.size() || member.packed > in.size() - data_at)
      in.fail("it is cut off or an offset points outside");
    packed_sum += member.packed;
    if (packed_sum > in.size()) in.fail("members overlap");
    if (!member.name.ends_with(".npy")) continue;
    const std::string name = member.name.substr(0, member.name.size() - 4);
    if (!seen.insert(name).second) in.fail(fmt::format("two members are named '{}'", member.name));
    take(member, name, data_at);
  }
}

/// All arrays, or those of the names.
NpzArrays read_members(const Bytes& in, const std::vector<std::string>& names) {
  NpzArrays arrays;
  for_each_array(in, [&](const Member& member, const std::string& name, uint64_t data_at) {
    if (!names.empty() && std::find(names.begin(), names.end(), name) == names.end()) {
      arrays.unread.push_back(name);
      return;
    }
    try {
      arrays.emplace_back(name, read_member(in, member, data_at));
    } catch (const NpyTypeError& e) { arrays.left_out.emplace_back(name, e.what()); }
  });
  return arrays;
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

NpzArrays parse_npz(std::span<const std::byte> bytes, std::string_view where) {
  return read_members(Bytes(bytes, where), {});
}

NpzArrays read_npz(const std::filesystem::path& path, const std::vector<std::string>& names) {
  const std::string where = path.string();
  return within_memory(where, [&] {
    const InputFile file(path, "an .npz file");
    if (!file.is_regular()) {  // a pipe has no places to go back to
      const std::vector<std::byte> bytes = read_file(path, "an .npz file");
      return read_members(Bytes(bytes, where), names);
    }
    return read_members(Bytes(file.descriptor(), file.size(), where), names);
  });
}

std::optional<StoredArray> find_stored(const std::filesystem::path& path, const std::string& name) {
  const std::string where = path.string();
  return within_memory(where, [&]() -> std::optional<StoredArray> {
    const InputFile file(path, "an .npz file");
    if (!file.is_regular()) return std::nullopt;
    const Bytes in(file.descriptor(), file.size(), where);
    std::optional<StoredArray> found;
    for_each_array(in, [&](const Member& member, const std::string& own, uint64_t at) {
      if (own != name || member.method != kStored || member.packed != member.unpacked) return;
      constexpr uint64_t kLongestHeader = 1 << 16;  // of plain types
      const auto begin = in.part(at, std::min(member.packed, kLongestHeader));
      const NpyHeader header = parse_npy_header(begin, fmt::format("{}: {}", where, member.name));
      if (header.swapped || header.fortran_order) return;
      if (crc_in_file(in, at, member.packed) != member.crc)
        in.fail(fmt::format("member '{}' has a wrong checksum", member.name));
      found = StoredArray{header, at + header.data_offset, member.packed - header.data_offset};
    });
    return found;
  });
}

constexpr size_t kShownNames = 20;

const Array& find_array(const NpzArrays& arrays, std::string_view name, std::string_view where) {
  for (const auto& [array_name, reason] : arrays.left_out) {
    if (array_name == name) throw InputError(reason);
  }
  std::vector<std::string> names;
  for (const auto& [array_name, array] : arrays) {
    if (array_name == name) return array;
    if (names.size() <= kShownNames) names.push_back(array_name);
  }
  for (const std::string& other : arrays.unread)
    if (names.size() <= kShownNames) names.push_back(other);
  if (names.size() > kShownNames) names.back() = "…";
  const std::string known = fmt::format("{}", fmt::join(names, ", "));
  throw InputError(fmt::format("array '{}' is missing", name), where,
                   fmt::format("it among those present ({})", known.empty() ? "none" : known));
}

void write_npz(const std::filesystem::path& path, const NpzArrays& arrays, NpzCompression compression) {
  AtomicFile file(path);
  std::string directory;
  uint64_t at = 0;
  for (const auto& [name, array] : arrays) {
    const Array whole = array.packed();
    const std::string head = encode_npy_header(whole.storage(), whole.shape());
    const std::span<const std::byte> parts[] = {std::as_bytes(std::span(head)), whole.raw()};
    uint64_t plain_size = 0;
    uint32_t crc = 0;
    for (const auto part : parts) {
      plain_size += part.size();
      crc = crc_of(part, crc);
    }
    std::optional<DeflatedMember> deflated;
    if (compression == NpzCompression::deflated) {
      deflated.emplace(path);
      for (const auto part : parts) deflated->add(part);
      deflated->finish();
    }
    const Member member{name + ".npy", deflated ? kDeflated : kStored,
                        crc,           deflated ? deflated->size() : plain_size,
                        plain_size,    at};
    const std::string local = local_header(member);
    file.write(local);
    if (deflated)
      deflated->copy_to(file);
    else
      for (const auto part : parts) file.write(part);
    directory += central_header(member);
    at += local.size() + member.packed;
  }
  file.write(directory);
  file.write(end_records(arrays.size(), directory.size(), at));
  file.commit();
}

void write_zip(const std::filesystem::path& path,
               const std::vector<std::pair<std::string, std::vector<std::byte>>>& members) {
  AtomicFile file(path);
  std::string directory;
  uint64_t at = 0;
  for (const auto& [name, content] : members) {
    const Member member{name, kStored, crc_of(content), content.size(), content.size(), at};
    const std::string local = local_header(member);
    file.write(local);
    file.write(content);
    directory += central_header(member);
    at += local.size() + member.packed;
  }
  file.write(directory);
  file.write(end_records(members.size(), directory.size(), at));
  file.commit();
}

}  // namespace lockstep::io
