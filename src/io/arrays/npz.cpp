// The ZIP container of .npz files: central directory, stored and deflated members, ZIP64.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>

#include "core/files/atomic_file.hpp"
#include "io/arrays/npy.hpp"
#include "io/arrays/zip.hpp"
#include "io/text/file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr uint16_t kStored = 0, kDeflated = 8, kZip64Field = 1;
constexpr uint64_t kIn64 = 0xffffffffu;
// Deflate cannot shrink data below about 1/1032, so a larger claim is a lie.
constexpr uint64_t kDeflateRatio = 1032;

// Little-endian words with bounds checks.
class Bytes {
 public:
  Bytes(std::span<const std::byte> bytes, std::string_view where) : bytes_(bytes), where_(where) {}
  [[noreturn]] void fail(std::string_view what) const {
    throw InputError(fmt::format("malformed .npz archive: {}", what), where_, "a ZIP archive of .npy arrays");
  }
  std::span<const std::byte> part(uint64_t at, uint64_t count) const {
    if (at > bytes_.size() || count > bytes_.size() - at) fail("it is cut off or an offset points outside");
    return bytes_.subspan(at, count);
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
  uint64_t size() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  std::string_view where_;
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
  if (unpacked / kDeflateRatio > packed.size() + 1) in.fail("a member claims an impossible size");
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

/// A member's deflated content, kept beside the archive until it is whole: the archive states its size first.
class DeflatedMember {
 public:
  explicit DeflatedMember(const std::filesystem::path& archive)
      : path_(archive.string() + ".deflated"),
        file_(path_.temporary(), std::ios::binary | std::ios::in | std::ios::out | std::ios::trunc) {
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
  void finish() {
    run({}, Z_FINISH);
    file_.flush();
  }
  uint64_t size() const { return size_; }
  void copy_to(AtomicFile& archive) {
    file_.seekg(0);
    for (uint64_t left = size_; left > 0;) {
      const auto part = std::span(buffer_).first(std::min<uint64_t>(left, buffer_.size()));
      if (!file_.read(reinterpret_cast<char*>(part.data()), static_cast<std::streamsize>(part.size())))
        throw InputError("cannot write the file", path_.target().string(),
                         "a folder that can be written and has room");
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
      file_.write(reinterpret_cast<const char*>(buffer_.data()), static_cast<std::streamsize>(made));
      size_ += made;
    } while (stream_.avail_out == 0);
  }
  AtomicPath path_;
  std::fstream file_;
  z_stream stream_{};
  uint64_t size_ = 0;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(1 << 18);
};

}  // namespace

NpzArrays parse_npz(std::span<const std::byte> bytes, std::string_view where) {
  const Bytes in(bytes, where);
  const Directory directory = find_directory(in);
  NpzArrays arrays;
  uint64_t at = directory.offset, packed_sum = 0;
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
    const auto packed = in.part(data_at, member.packed);
    packed_sum += member.packed;
    if (packed_sum > in.size()) in.fail("members overlap");
    if (!member.name.ends_with(".npy")) continue;
    const std::string place = fmt::format("{}: {}", where, member.name);
    std::vector<std::byte> inflated;
    std::span<const std::byte> content = packed;
    if (member.method == kDeflated) {
      inflated = inflate_member(in, packed, member.unpacked);
      content = inflated;
    } else if (member.method != kStored || member.packed != member.unpacked) {
      in.fail(fmt::format("member '{}' uses compression method {}", member.name, member.method));
    }
    if (crc_of(content) != member.crc) in.fail(fmt::format("member '{}' has a wrong checksum", member.name));
    const std::string name = member.name.substr(0, member.name.size() - 4);
    try {
      arrays.emplace_back(name, parse_npy(content, place));
    } catch (const NpyTypeError& e) { arrays.left_out.emplace_back(name, e.what()); }
  }
  return arrays;
}

NpzArrays read_npz(const std::filesystem::path& path) {
  return parse_npz(read_file(path, "an .npz file"), path.string());
}

const Array& find_array(const NpzArrays& arrays, std::string_view name, std::string_view where) {
  for (const auto& [array_name, reason] : arrays.left_out) {
    if (array_name == name) throw InputError(reason);
  }
  std::string known;
  for (const auto& [array_name, array] : arrays) {
    if (array_name == name) return array;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", array_name);
  }
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
