#include "io/text/unpack.hpp"

#include <bzlib.h>
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "io/text/input_memory.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

// Text of numbers packs to a fifth to a tenth; a far larger ratio is made to take all memory.
constexpr size_t kLargestRatio = 200, kAlwaysAllowed = size_t{1} << 20;
constexpr size_t kChunk = size_t{1} << 18;

[[noreturn]] void fail_unpacking(std::string_view what, std::string_view where) {
  throw InputError(what, where, "a whole gzip or bzip2 file");
}

// Runs `step(input, output)`, which takes and fills parts of both and returns whether it is at the end of a packed
// stream; further streams may follow it.
template <class Step, class Restart>
std::string unpack_streams(std::string_view packed, std::string_view where, Step step, Restart restart) {
  std::string out;
  std::string_view rest = packed;
  InputClaim claim;
  while (true) {
    const size_t before = out.size(), left = rest.size();
    out.resize(before + kChunk);
    size_t written = 0;
    const bool ended = step(rest, out.data() + before, written);
    out.resize(before + written);
    claim.reach(out.size(), "its unpacked text", where);
    if (out.size() > kAlwaysAllowed && out.size() / kLargestRatio > packed.size())
      fail_unpacking(fmt::format("more than {} times its size when unpacked", kLargestRatio), where);
    if (ended && rest.empty()) {
      claim.settle(out.capacity());
      ReaderScope::keep(std::move(claim));
      return out;
    }
    if (ended) {
      restart();
    } else if (written == 0 && rest.size() == left) {
      fail_unpacking("the packed data ends too early", where);
    }
  }
}

std::string gunzip(std::string_view packed, std::string_view where) {
  struct Inflater {
    z_stream stream{};
    ~Inflater() { inflateEnd(&stream); }
  } inflater;
  z_stream& stream = inflater.stream;
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) fail_unpacking("zlib cannot start", where);
  return unpack_streams(
      packed, where,
      [&](std::string_view& rest, char* to, size_t& written) {
        const auto given = static_cast<uInt>(std::min<size_t>(rest.size(), 1u << 30));
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
        stream.avail_in = given;
        stream.next_out = reinterpret_cast<Bytef*>(to);
        stream.avail_out = kChunk;
        const int status = inflate(&stream, Z_NO_FLUSH);
        if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
          fail_unpacking("the packed data is damaged", where);
        rest.remove_prefix(given - stream.avail_in);
        written = kChunk - stream.avail_out;
        return status == Z_STREAM_END;
      },
      [&] { inflateReset(&stream); });
}

std::string bunzip2(std::string_view packed, std::string_view where) {
  struct Decompressor {
    bz_stream stream{};
    ~Decompressor() { BZ2_bzDecompressEnd(&stream); }
    bool start() { return BZ2_bzDecompressInit(&stream, 0, 0) == BZ_OK; }
  } decompressor;
  bz_stream& stream = decompressor.stream;
  if (!decompressor.start()) fail_unpacking("bzip2 cannot start", where);
  return unpack_streams(
      packed, where,
      [&](std::string_view& rest, char* to, size_t& written) {
        const auto given = static_cast<unsigned>(std::min<size_t>(rest.size(), 1u << 30));
        stream.next_in = const_cast<char*>(rest.data());
        stream.avail_in = given;
        stream.next_out = to;
        stream.avail_out = kChunk;
        const int status = BZ2_bzDecompress(&stream);
        if (status != BZ_OK && status != BZ_STREAM_END) fail_unpacking("the packed data is damaged", where);
        rest.remove_prefix(given - stream.avail_in);
        written = kChunk - stream.avail_out;
        return status == BZ_STREAM_END;
      },
      [&] {
        BZ2_bzDecompressEnd(&stream);
        stream = bz_stream{};
        if (!decompressor.start()) fail_unpacking("bzip2 cannot start", where);
      });
}

}  // namespace

std::string unpack_text(std::string bytes, std::string_view where) {
  if (bytes.starts_with("\x1f\x8b")) return gunzip(bytes, where);
  if (bytes.starts_with("BZh")) return bunzip2(bytes, where);
  return bytes;
}

}  // namespace lockstep::io
