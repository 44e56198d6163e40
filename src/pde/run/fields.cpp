#include "pde/run/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/reports/host_stage.hpp"

namespace lockstep::pde {
namespace {

constexpr auto kRead = "read";

size_t z_axis(const Sizes& shape) { return shape.size() - 3; }

/// Planes around the ends where z is periodic.
std::vector<int64_t> held_positions(const DividedLoss& loss) {
  const int64_t nz = loss.mesh().cells[2];
  const parallel::Range held = loss.held();
  std::vector<int64_t> positions;
  for (int64_t z = held.begin; z < held.end; ++z) positions.push_back((z % nz + nz) % nz);
  return positions;
}

/// Planes of an array in memory.
Array taken(const Array& whole, const std::vector<int64_t>& positions) {
  const Array packed = whole.packed();
  Sizes shape = packed.shape();
  const auto nz = size_t(shape[z_axis(shape)]);
  size_t rows = 1;
  for (size_t axis = 0; axis < z_axis(shape); ++axis) rows *= size_t(shape[axis]);
  const size_t plane = size_t(packed.bytes()) / (rows * nz);
  shape[z_axis(shape)] = int64_t(positions.size());
  Array part(packed.storage(), shape);
  std::byte* to = part.mutate_raw().data();
  for (size_t row = 0; row < rows; ++row)
    for (const int64_t z : positions) {
      std::memcpy(to, packed.data() + (row * nz + size_t(z)) * plane, plane);
      to += plane;
    }
  return part;
}

bool holds_all(const DividedLoss& loss) { return loss.held() == parallel::Range{0, loss.mesh().cells[2]}; }

}  // namespace

std::vector<std::string> FieldsInMemory::names() const {
  std::vector<std::string> names;
  for (const auto& [name, array] : arrays_) names.push_back(name);
  return names;
}

ArrayHead FieldsInMemory::head(const std::string& name) const {
  const Array& array = arrays_.at(name);
  return {array.storage(), array.shape()};
}

Array FieldsInMemory::planes(const std::string& name, const DividedLoss& loss) const {
  const Array& whole = arrays_.at(name);
  return holds_all(loss) ? whole : taken(whole, held_positions(loss));
}

void FieldsInMemory::add_to(record::Identity& identity) const {
  for (const auto& [name, array] : arrays_) identity.array(name, array);
}

FieldsInFile::FieldsInFile(const std::filesystem::path& path, const std::vector<std::string>& names,
                           std::vector<StageRecord>& stages)
    : file_(path), stages_(stages) {
  for (const std::string& name : file_.names()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      unread_.push_back(name);
      continue;
    }
    try {
      const io::NpyHeader header = file_.header(name);
      heads_[name] = {header.storage, header.shape};
    } catch (const io::NpyTypeError& e) { left_out_.emplace_back(name, e.problem()); }
  }
}

std::vector<std::string> FieldsInFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, head] : heads_) names.push_back(name);
  return names;
}

Array FieldsInFile::whole(const std::string& name) const {
  return host_stage(stages_, kRead, [&] { return file_.read(name); });
}

Array FieldsInFile::planes(const std::string& name, const DividedLoss& loss) const {
  const std::vector<int64_t> positions = held_positions(loss);
  const auto read = host_stage(
      stages_, kRead, [&] { return file_.read_slices(name, z_axis(heads_.at(name).shape), positions); });
  if (!read) return taken(whole(name), positions);
  const Array& part = *read;
  if (parts_.contains(name)) return part;
  const Sizes& shape = part.shape();
  const auto held = size_t(shape[z_axis(shape)]), first = size_t(loss.own().begin - loss.held().begin),
             own = size_t(loss.own().size());
  const auto plane = size_t(shape[shape.size() - 2] * shape.back() * size_of(part.storage()));
  for (size_t at = first * plane; at < size_t(part.bytes()); at += held * plane)
    parts_[name].push_back(io::checksum_of({part.data() + at, own * plane}));
  return part;
}

void FieldsInFile::add_to(record::Identity& identity) const {
  for (const auto& [name, head] : heads_)
    identity.option(name, fmt::format("{} {} {:08x}", lockstep::name(head.storage), to_string(head.shape),
                                      file_.checksum(name)));
}

/// Elements of a row are the own planes of all ranks in their order.
void FieldsInFile::verify(const parallel::Group& group) const {
  std::vector<io::PartChecksum> mine;
  for (const auto& [name, parts] : parts_) mine.insert(mine.end(), parts.begin(), parts.end());
  std::vector<std::vector<io::PartChecksum>> all;
  for (const parallel::Bytes& bytes :
       group.gather(parallel::bytes_of(std::span<const io::PartChecksum>(mine))))
    parallel::append_numbers(all.emplace_back(), bytes);
  size_t row = 0;
  for (const auto& [name, parts] : parts_) {
    std::vector<io::PartChecksum> in_order;
    for (size_t k = 0; k < parts.size(); ++k, ++row)
      for (const auto& of_rank : all) in_order.push_back(of_rank.at(row));
    if (group.leads()) file_.verify(name, in_order);
  }
}

}  // namespace lockstep::pde
