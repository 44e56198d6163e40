// Memory of the interpreter with what it knows of each byte and each element.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "device/backend.hpp"

namespace lockstep::interp {

/// Who touched an element in the launch or group that `serial` names. An agent is a group (a point of a
/// points kernel), its lane, and the number of barriers the group has passed. Atomic accesses count as reads:
/// they conflict with plain writes only.
struct AccessRecord {
  uint32_t serial = 0;
  uint32_t write_group = 0, write_epoch = 0, read_group = 0, read_epoch = 0;
  uint16_t write_lane = 0, read_lane = 0;
  bool written = false, read = false, many_groups = false, many_lanes = false;

  /// Each gives whether the access races with an earlier one.
  bool note_read(uint32_t now, uint32_t group, uint16_t lane, uint32_t epoch) {
    renew(now);
    const bool race = conflicts_with_write(group, lane, epoch);
    if (!read || (read_group == group && read_epoch != epoch)) {
      read = true;
      read_group = group;
      read_epoch = epoch;
      read_lane = lane;
      many_lanes = false;
    } else if (read_group != group) {
      many_groups = true;
    } else if (read_lane != lane) {
      many_lanes = true;
    }
    return race;
  }
  bool note_write(uint32_t now, uint32_t group, uint16_t lane, uint32_t epoch) {
    renew(now);
    bool race = conflicts_with_write(group, lane, epoch) || many_groups;
    if (read && !race)
      race = read_group != group || (read_epoch == epoch && (many_lanes || read_lane != lane));
    written = true;
    write_group = group;
    write_epoch = epoch;
    write_lane = lane;
    return race;
  }

 private:
  void renew(uint32_t now) {
    if (serial == now) return;
    *this = AccessRecord();
    serial = now;
  }
  bool conflicts_with_write(uint32_t group, uint16_t lane, uint32_t epoch) const {
    return written && (write_group != group || (write_epoch == epoch && write_lane != lane));
  }
};

class InterpMemory final : public device::Memory {
 public:
  /// Fresh memory holds a pattern, so that a read of it shows.
  explicit InterpMemory(int64_t size) : own_(std::make_unique<uint8_t[]>(size_t(size))), data_(own_.get()) {
    start(size, 0);
    std::memset(data_, 0xa5, size_t(size));
  }
  /// Memory of others, which they have filled.
  InterpMemory(const Foreign& foreign, int64_t size)
      : owner_(foreign.owner), data_(reinterpret_cast<uint8_t*>(uintptr_t(foreign.address))) {
    start(size, 1);
  }
  uint8_t* data() { return data_; }
  uint8_t* initialised() { return initialised_.get(); }  // one byte for each byte: 0 or 1
  /// Records for elements of `granule` bytes; those of another granule are forgotten.
  AccessRecord* records(int granule) {
    const size_t count = size_t(bytes) / size_t(granule) + 1;
    if (granule != granule_ || records_.size() != count) {
      records_.assign(count, AccessRecord());
      granule_ = granule;
    }
    return records_.data();
  }

 private:
  void start(int64_t size, uint8_t filled) {
    bytes = size;
    address = uint64_t(reinterpret_cast<uintptr_t>(data_));
    initialised_ = std::make_unique<uint8_t[]>(size_t(size));
    std::memset(initialised_.get(), filled, size_t(size));
  }
  std::unique_ptr<uint8_t[]> own_;
  std::shared_ptr<const void> owner_;
  uint8_t* data_;
  std::unique_ptr<uint8_t[]> initialised_;
  std::vector<AccessRecord> records_;
  int granule_ = 0;
};

}  // namespace lockstep::interp
