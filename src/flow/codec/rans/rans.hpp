// The coder of rans_format.hpp on a device, and in plain C++.
#pragma once

#include "flow/codec/rans/rans_format.hpp"
#include "lockstep/device.hpp"

namespace lockstep::flow {

/// Codes u32 numbers (frames, rows, columns); the same bytes on every device. At most 2^22 numbers at once, or one
/// frame.
std::vector<uint8_t> rans_encode(const Device& device, const Buffer& numbers);
/// Fills `numbers`. Throws InputError for damaged bytes.
void rans_decode(const Device& device, std::span<const uint8_t> bytes, const Buffer& numbers,
                 std::string_view where);
/// Everything that the two launch.
std::vector<Kernel> rans_kernels();

/// The launches alone, for cases: buffers stay on the device.
class RansCoder {
 public:
  RansCoder(const Device& device, const RansShape& shape);
  /// Tokens and contexts of the numbers, counted; reads the counts.
  void count(const Buffer& numbers);
  /// States, words of each lane and their number.
  void encode(const Buffer& numbers);
  RansStream stream() const;
  void load(const RansStream& stream);
  void decode(const Buffer& numbers);
  /// Whether every lane ended as it began.
  bool sound() const;

 private:
  void set_tables(std::vector<uint32_t> frequencies);
  Device device_;
  RansShape shape_;
  std::vector<uint32_t> frequencies_;
  Buffer keys_, counts_, table_, slots_, cumulative_;  // of tokens
  Buffer words_, lane_words_, states_, offsets_, packed_, status_;
};

namespace reference {
std::vector<uint8_t> rans_encode(std::span<const uint32_t> numbers, const RansShape& shape);
std::vector<uint32_t> rans_decode(std::span<const uint8_t> bytes, const RansShape& shape);
}  // namespace reference

}  // namespace lockstep::flow
