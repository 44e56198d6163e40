// Buffers as plain memory: what the host API has to do, without the engine.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "lockstep/device.hpp"

namespace lockstep::fuzz {

/// The bytes of one allocation as they should be, and which of them anybody has written.
struct Block {
  std::vector<uint8_t> bytes;
  std::vector<bool> known;
  std::shared_ptr<std::vector<uint64_t>> foreign;  // memory that a device wraps; null: the device's own
};

/// A buffer and where its elements are.
struct View {
  Buffer buffer;
  std::shared_ptr<Block> block;
  Storage storage = Storage::u8;
  int64_t first = 0;  // byte
  std::vector<int64_t> shape, strides;

  int64_t size() const { return size_of(storage); }
  int64_t elements() const {
    int64_t n = 1;
    for (const int64_t s : shape) n *= s;
    return n;
  }
  /// First bytes of all elements, in row-major order.
  std::vector<int64_t> places() const {
    std::vector<int64_t> all;
    if (elements() == 0) return all;
    all.push_back(first);
    for (size_t a = 0; a < shape.size(); ++a) {
      std::vector<int64_t> next;
      for (const int64_t place : all)
        for (int64_t k = 0; k < shape[a]; ++k) next.push_back(place + k * strides[a] * size());
      all = std::move(next);
    }
    return all;
  }
  bool dense() const {
    const std::vector<int64_t> all = places();
    for (size_t k = 0; k < all.size(); ++k)
      if (all[k] != first + int64_t(k) * size()) return false;
    return true;
  }
  /// How many elements each byte belongs to.
  std::map<int64_t, int> owners() const {
    std::map<int64_t, int> count;
    for (const int64_t place : places())
      for (int64_t k = 0; k < size(); ++k) ++count[place + k];
    return count;
  }
  bool twice() const {
    for (const auto& [byte, count] : owners())
      if (count > 1) return true;
    return false;
  }
  bool meets(const View& other) const {
    if (block != other.block) return false;
    const auto mine = owners(), theirs = other.owners();
    for (const auto& [byte, count] : mine)
      if (theirs.contains(byte)) return true;
    return false;
  }
  bool known() const {
    for (const auto& [byte, count] : owners())
      if (!block->known[size_t(byte)]) return false;
    return true;
  }
  std::vector<uint8_t> contents() const {
    std::vector<uint8_t> all;
    for (const int64_t place : places())
      for (int64_t k = 0; k < size(); ++k) all.push_back(block->bytes[size_t(place + k)]);
    return all;
  }
  uint64_t value(int64_t place) const {
    uint64_t bits = 0;
    for (int64_t k = 0; k < size(); ++k) bits |= uint64_t(block->bytes[size_t(place + k)]) << (8 * k);
    return bits;
  }
  void set(int64_t place, uint64_t bits) const {
    for (int64_t k = 0; k < size(); ++k) {
      block->bytes[size_t(place + k)] = uint8_t(bits >> (8 * k));
      block->known[size_t(place + k)] = true;
    }
  }
};

}  // namespace lockstep::fuzz
