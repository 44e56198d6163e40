// The arrays of a run by name: in memory, or in an archive of which a rank reads its planes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/record/identity.hpp"
#include "io/arrays/npz_file.hpp"
#include "lockstep/pde/divided.hpp"
#include "lockstep/pde/run.hpp"

namespace lockstep::pde {

/// An array before its elements are read.
struct ArrayHead {
  Storage storage = Storage::f32;
  Sizes shape;
};

class Fields {
 public:
  virtual ~Fields() = default;
  virtual std::vector<std::string> names() const = 0;
  virtual ArrayHead head(const std::string& name) const = 0;
  virtual Array whole(const std::string& name) const = 0;
  /// The held planes of an array (…, nz, ny, nx).
  virtual Array planes(const std::string& name, const DividedLoss& loss) const = 0;
  /// Adds each array by its content.
  virtual void add_to(record::Identity& identity) const = 0;
  /// Once the planes are read. Collective; throws on rank 0 for elements that are not those of the archive.
  virtual void verify(const parallel::Group& /*group*/) const {}
};

class FieldsInMemory final : public Fields {
 public:
  explicit FieldsInMemory(const NamedArrays& arrays) : arrays_(arrays) {}
  std::vector<std::string> names() const override;
  ArrayHead head(const std::string& name) const override;
  Array whole(const std::string& name) const override { return arrays_.at(name); }
  Array planes(const std::string& name, const DividedLoss& loss) const override;
  void add_to(record::Identity& identity) const override;

 private:
  const NamedArrays& arrays_;
};

/// Members that are not stored as in memory are read as a whole and cut.
class FieldsInFile final : public Fields {
 public:
  /// Of the members with these names those that are there.
  /// `stages` gets host stages "read".
  FieldsInFile(const std::filesystem::path& path, const std::vector<std::string>& names,
               std::vector<StageRecord>& stages);
  std::vector<std::string> names() const override;
  ArrayHead head(const std::string& name) const override { return heads_.at(name); }
  Array whole(const std::string& name) const override;
  Array planes(const std::string& name, const DividedLoss& loss) const override;
  void add_to(record::Identity& identity) const override;
  void verify(const parallel::Group& group) const override;

  /// Members whose types nothing here has a use for, and why; members that nobody named.
  const std::vector<std::pair<std::string, std::string>>& left_out() const { return left_out_; }
  const std::vector<std::string>& unread() const { return unread_; }

 private:
  io::NpzFile file_;
  std::vector<StageRecord>& stages_;
  std::map<std::string, ArrayHead> heads_;
  std::vector<std::pair<std::string, std::string>> left_out_;
  std::vector<std::string> unread_;
  mutable std::map<std::string, std::vector<io::PartChecksum>> parts_;  // own planes, row by row
};

}  // namespace lockstep::pde
