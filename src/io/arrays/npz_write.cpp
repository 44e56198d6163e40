// Writes ZIP archives: arrays as NumPy does, whole files as they are.
#include <zlib.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "core/files/atomic_file.hpp"
#include "core/record/stamp.hpp"
#include "core/reports/json_text.hpp"
#include "io/arrays/npy.hpp"
#include "io/arrays/zip.hpp"
#include "io/arrays/zip_records.hpp"
#include "io/text/file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace zip {
namespace {

struct WrittenMember {
  std::string name;
  uint16_t method = 0;
  uint32_t crc = 0;
  uint64_t packed = 0, unpacked = 0, offset = 0;
};

void append(std::string& out, uint64_t value, int size) {
  for (int k = 0; k < size; ++k) out += static_cast<char>(value >> (8 * k) & 255);
}
constexpr uint16_t kVersion = 45;

/// Fields of both headers of a member. Sizes and offset are always in the ZIP64 fields, as NumPy writes them.
void append_common(std::string& out, const WrittenMember& member) {
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
std::string local_header(const WrittenMember& member) {
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
std::string central_header(const WrittenMember& member) {
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
std::string end_records(uint64_t members, uint64_t bytes, uint64_t at, const std::string& comment = {}) {
  std::string out;
  if (members == 0) {
    // Readers know an archive by its first bytes, and one without members by the plain end record.
    append(out, kEnd, 4);
    out.append(16, '\0');
    append(out, comment.size(), 2);
    return out + comment;
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
  append(out, comment.size(), 2);
  return out + comment;
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
}  // namespace zip

namespace {

std::string comment_of(const NpzLabels& labels) {
  constexpr size_t kLongest = 65535;
  const record::Stamp stamp = record::stamp();
  nlohmann::ordered_json comment;
  if (!labels.title.empty()) comment["title"] = labels.title;
  for (const auto& [array, unit] : labels.units) comment["units"][array] = unit;
  comment["program"] = stamp.program;
  if (!stamp.run.empty()) comment[record::kRunName] = stamp.run;
  const std::string text = json_text(comment);
  return text.size() <= kLongest ? text : std::string();
}

}  // namespace

void write_npz(const std::filesystem::path& path, const NpzArrays& arrays, NpzCompression compression,
               const NpzLabels& labels) {
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
      crc = zip::crc_of(part, crc);
    }
    std::optional<zip::DeflatedMember> deflated;
    if (compression == NpzCompression::deflated) {
      deflated.emplace(path);
      for (const auto part : parts) deflated->add(part);
      deflated->finish();
    }
    const zip::WrittenMember member{name + ".npy", deflated ? zip::kDeflated : zip::kStored,
                                    crc,           deflated ? deflated->size() : plain_size,
                                    plain_size,    at};
    const std::string local = zip::local_header(member);
    file.write(local);
    if (deflated)
      deflated->copy_to(file);
    else
      for (const auto part : parts) file.write(part);
    directory += zip::central_header(member);
    at += local.size() + member.packed;
  }
  file.write(directory);
  file.write(zip::end_records(arrays.size(), directory.size(), at, comment_of(labels)));
  file.commit();
}

void write_zip(const std::filesystem::path& path,
               const std::vector<std::pair<std::string, std::vector<std::byte>>>& members) {
  AtomicFile file(path);
  std::string directory;
  uint64_t at = 0;
  for (const auto& [name, content] : members) {
    const zip::WrittenMember member{name,           zip::kStored,   zip::crc_of(content),
                                    content.size(), content.size(), at};
    const std::string local = zip::local_header(member);
    file.write(local);
    file.write(content);
    directory += zip::central_header(member);
    at += local.size() + member.packed;
  }
  file.write(directory);
  file.write(zip::end_records(members.size(), directory.size(), at));
  file.commit();
}

}  // namespace lockstep::io
