// Fields and series of a run: saved fields in files next to the result, and series in memory.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/arrays/netcdf_arrays.hpp"
#include "io/arrays/npz_file.hpp"
#include "lockstep/flow/run.hpp"
#include "lockstep/parallel.hpp"

namespace lockstep::flow {

/// The field that is called so; nothing for files.
std::optional<Initial> named_initial(const std::string& text);
/// As load_initial() of lockstep/flow/run.hpp; of a random field that is called so, these members alone.
Array load_initial(RunOptions& options, const parallel::Range& own);
/// Vorticity of .npz, .nc, .npy or .mat, of any rank.
Array read_vorticity(const std::filesystem::path& path);
/// Whether its moments can be read one by one, by io::FrameFile.
bool has_frames(const std::filesystem::path& path);
/// Arrays of a saved run by name: `omega`, `time`, `x`, `y`.
io::NpzArrays read_run(const std::filesystem::path& path, const std::vector<std::string>& names);

/// Saved moments of a run. Fields are in files of their own until the run's result is assembled; a run
/// that was killed finds them again.
class Series {
 public:
  /// `folder` holds the result, `fields` the fields until then; both are made where they are missing.
  Series(std::filesystem::path folder, std::filesystem::path fields, const BoxGrid& grid, Storage precision,
         int64_t members);

  struct Moment {
    std::vector<double> time;
    std::vector<Budget> budget;
    std::vector<Spectra> spectra;
  };
  void add(const Moment& moment, const Array& omega);
  /// Rows of moments of all members, kept in addition to the saved ones.
  void add_history(const std::vector<std::vector<flow::Moment>>& rows) {
    history_.insert(history_.end(), rows.begin(), rows.end());
  }
  int64_t size() const { return int64_t(moments_.size()); }
  const Moment& last() const { return moments_.back(); }
  const Moment& moment(int64_t k) const { return moments_[size_t(k)]; }
  /// The series without the fields, for a checkpoint, and back; fields that a later moment wrote are dropped.
  io::NpzArrays packed() const;
  void restore(const io::NpzFile& checkpoint);
  Array field(int64_t moment) const;
  /// Writes the result with all fields and removes their own files.
  std::filesystem::path write_result(RunOptions::Format format) const;
  void remove_fields() const;

 private:
  Array all_fields() const;
  std::vector<io::NetcdfVariable> variables() const;
  Array packed_history() const;
  std::filesystem::path field_file(int64_t moment) const;
  std::filesystem::path folder_, fields_;
  BoxGrid grid_;
  Storage precision_;
  int64_t members_;
  std::vector<Moment> moments_;
  std::vector<std::vector<flow::Moment>> history_;
};

}  // namespace lockstep::flow
