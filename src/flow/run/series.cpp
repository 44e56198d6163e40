#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/files/folder.hpp"
#include "core/reports/log.hpp"
#include "flow/modes.hpp"
#include "flow/run/fields.hpp"
#include "lockstep/error.hpp"

namespace lockstep::flow {

namespace fs = std::filesystem;

namespace {

constexpr int kNumbers = 4;  // time, energy, enstrophy, palinstrophy of a member at a moment

using Ring = std::vector<double> Spectra::*;
constexpr std::pair<const char*, Ring> kRings[] = {{"energy_spectrum", &Spectra::energy},
                                                   {"enstrophy_spectrum", &Spectra::enstrophy},
                                                   {"energy_flux", &Spectra::energy_flux},
                                                   {"enstrophy_flux", &Spectra::enstrophy_flux}};

/// Columns of the history: time, then these.
struct HistoryColumn {
  const char* name;
  const char* long_name;
  double& (*of)(flow::Moment& moment);
};
#define LOCKSTEP_COLUMN(name, long_name, member) \
  {name, long_name, [](flow::Moment& m) -> double& { return m.member; }}
constexpr HistoryColumn kHistory[] = {
    LOCKSTEP_COLUMN("time", "time", time),
    LOCKSTEP_COLUMN("max_u", "largest |u|", max_u),
    LOCKSTEP_COLUMN("max_v", "largest |v|", max_v),
    LOCKSTEP_COLUMN("cfl", "dt (max|u| / dx + max|v| / dy)", courant),
    LOCKSTEP_COLUMN("energy", "mean of |u|^2 / 2", budget.energy),
    LOCKSTEP_COLUMN("enstrophy", "mean of omega^2 / 2", budget.enstrophy),
    LOCKSTEP_COLUMN("palinstrophy", "mean of |grad omega|^2 / 2", budget.palinstrophy),
    LOCKSTEP_COLUMN("energy_viscous", "rate of energy by viscosity", energy.viscous),
    LOCKSTEP_COLUMN("energy_drag", "rate of energy by linear drag", energy.drag),
    LOCKSTEP_COLUMN("energy_other", "rate of energy by hyper- and hypoviscosity", energy.other),
    LOCKSTEP_COLUMN("energy_forcing", "rate of energy by the steady force", energy.forcing),
    LOCKSTEP_COLUMN("energy_closure", "rate of energy by the closure", energy.closure),
    LOCKSTEP_COLUMN("energy_rate", "sum of the rates of energy", energy.all),
    LOCKSTEP_COLUMN("enstrophy_viscous", "rate of enstrophy by viscosity", enstrophy.viscous),
    LOCKSTEP_COLUMN("enstrophy_drag", "rate of enstrophy by linear drag", enstrophy.drag),
    LOCKSTEP_COLUMN("enstrophy_other", "rate of enstrophy by hyper- and hypoviscosity", enstrophy.other),
    LOCKSTEP_COLUMN("enstrophy_forcing", "rate of enstrophy by the steady force", enstrophy.forcing),
    LOCKSTEP_COLUMN("enstrophy_closure", "rate of enstrophy by the closure", enstrophy.closure),
    LOCKSTEP_COLUMN("enstrophy_rate", "sum of the rates of enstrophy", enstrophy.all),
};
#undef LOCKSTEP_COLUMN
constexpr auto kHistoryColumns = int64_t(std::size(kHistory));

Array points(int64_t count, double spacing) {
  std::vector<double> at;
  for (int64_t k = 0; k < count; ++k) at.push_back(double(k) * spacing);
  return Array::of(std::move(at));
}

}  // namespace

Series::Series(fs::path folder, fs::path fields, const BoxGrid& grid, Storage precision, int64_t members)
    : folder_(std::move(folder)),
      fields_(std::move(fields)),
      grid_(grid),
      precision_(precision),
      members_(members) {
  make_output_folder(folder_);
  make_output_folder(fields_);
}

fs::path Series::field_file(int64_t moment) const { return fields_ / fmt::format("omega_{:06}.npy", moment); }

void Series::add(const Moment& moment, const Array& omega) {
  io::write_npy(field_file(size()), omega);
  moments_.push_back(moment);
}

Array Series::field(int64_t moment) const {
  const Array field = io::read_npy(field_file(moment));
  if (field.shape() != Sizes{members_, grid_.ny, grid_.nx} || field.storage() != precision_)
    throw InputError(fmt::format("a field of shape {}", to_string(field.shape())),
                     field_file(moment).string(), "the field that this run wrote");
  return field;
}

io::NpzArrays Series::packed() const {
  io::NpzArrays arrays;
  std::vector<double> numbers;
  for (const Moment& m : moments_)
    for (size_t k = 0; k < size_t(members_); ++k)
      numbers.insert(numbers.end(),
                     {m.time[k], m.budget[k].energy, m.budget[k].enstrophy, m.budget[k].palinstrophy});
  arrays.emplace_back("series", Array::of(std::move(numbers), {size(), members_, kNumbers}));
  for (const auto& [name, ring] : kRings) {
    std::vector<double> all;
    for (const Moment& m : moments_)
      for (const Spectra& s : m.spectra) all.insert(all.end(), (s.*ring).begin(), (s.*ring).end());
    const int64_t rings = int64_t(all.size()) / std::max<int64_t>(1, size() * members_);
    arrays.emplace_back(name, Array::of(std::move(all), {size(), members_, rings}));
  }
  if (!history_.empty()) arrays.emplace_back("history", packed_history());
  return arrays;
}

Array Series::packed_history() const {
  std::vector<double> all;
  for (std::vector<flow::Moment> row : history_)
    for (flow::Moment& m : row)
      for (const HistoryColumn& column : kHistory) all.push_back(column.of(m));
  return Array::of(std::move(all), {int64_t(history_.size()), members_, kHistoryColumns});
}

void Series::restore(const io::NpzFile& checkpoint) {
  const Sizes shape = checkpoint.header("series").shape;
  if (shape.size() != 3 || shape[0] < 1)
    throw InputError(fmt::format("a series of shape {}", to_string(shape)), checkpoint.where(),
                     fmt::format("(moments, {}, {})", members_, kNumbers));
  // Fields on disk bound the moments, before any are read.
  for (int64_t k = 0; k < shape[0]; ++k)
    if (!fs::exists(field_file(k)))
      throw InputError("a saved field is missing", field_file(k).string(),
                       "the field next to its checkpoint");
  const int64_t moments = shape[0], rings = moments * members_ * (grid_.nx + grid_.ny);
  const Array numbers = checkpoint.read("series", {Storage::f64, 3, {moments, members_, kNumbers}});
  moments_.assign(size_t(moments), {});
  for (int64_t k = 0; k < moments; ++k)
    for (int64_t m = 0; m < members_; ++m) {
      Moment& moment = moments_[size_t(k)];
      moment.time.push_back(numbers.at<double>(k, m, 0));
      moment.budget.push_back(
          {numbers.at<double>(k, m, 1), numbers.at<double>(k, m, 2), numbers.at<double>(k, m, 3)});
      moment.spectra.emplace_back();
    }
  for (const auto& [name, ring] : kRings) {
    const Array all = checkpoint.read(name, {Storage::f64, 3, {moments, members_, -1}, rings});
    for (int64_t k = 0; k < moments; ++k)
      for (int64_t m = 0; m < members_; ++m)
        for (int64_t j = 0; j < all.size(2); ++j)
          (moments_[size_t(k)].spectra[size_t(m)].*ring).push_back(all.at<double>(k, m, j));
  }
  history_.clear();
  if (!checkpoint.has("history")) return;
  const Array rows = checkpoint.read("history", {Storage::f64, 3, {-1, members_, kHistoryColumns}});
  for (int64_t k = 0; k < rows.size(0); ++k) {
    auto& row = history_.emplace_back(static_cast<size_t>(members_));
    for (int64_t m = 0; m < members_; ++m)
      for (int64_t c = 0; c < kHistoryColumns; ++c) kHistory[c].of(row[size_t(m)]) = rows.at<double>(k, m, c);
  }
}

Array Series::all_fields() const {
  const int64_t count = size(), bytes = members_ * grid_.points() * int64_t(size_of(precision_));
  Array omega(precision_, {count, members_, grid_.ny, grid_.nx});
  std::byte* to = omega.mutate_raw().data();
  for (int64_t k = 0; k < count; ++k) {
    const Array one = field(k);
    std::copy_n(one.data(), bytes, to + k * bytes);
  }
  return omega;
}

std::vector<io::NetcdfVariable> Series::variables() const {
  std::vector<io::NetcdfVariable> all;
  const int64_t count = size();
  const io::NpzArrays series = packed();
  const Array& numbers = io::find_array(series, "series", "flow result");
  bool one_clock = true;
  for (int64_t k = 0; k < count; ++k)
    for (int64_t m = 0; m < members_; ++m)
      one_clock = one_clock && numbers.at<double>(k, m, 0) == numbers.at<double>(k, 0, 0);
  /// (time, member, …) without the axis of one member.
  const auto put = [&](const std::string& name, const Array& values, std::vector<std::string> more,
                       const std::string& long_name) {
    std::vector<std::string> dimensions{"time"};
    Sizes shape{count};
    if (members_ > 1) dimensions.push_back("member"), shape.push_back(members_);
    for (size_t a = 0; a < more.size(); ++a)
      dimensions.push_back(more[a]), shape.push_back(values.size(int(a) + 2));
    all.push_back({name, dimensions, values.reshape(shape), {{"long_name", long_name}}});
  };
  put("omega", all_fields(), {"y", "x"}, "vorticity v_x - u_y");
  constexpr std::pair<const char*, const char*> kNames[] = {{"member_time", "time"},
                                                            {"energy", "mean of |u|^2 / 2"},
                                                            {"enstrophy", "mean of omega^2 / 2"},
                                                            {"palinstrophy", "mean of |grad omega|^2 / 2"}};
  std::vector<double> times;
  for (int64_t k = 0; k < count; ++k) times.push_back(numbers.at<double>(k, 0, 0));
  all.push_back({"time",
                 {"time"},
                 Array::of(std::move(times)),
                 {{"long_name", one_clock ? "time" : "time of the first member"}}});
  for (int n = one_clock ? 1 : 0; n < kNumbers; ++n) {
    std::vector<double> values;
    for (int64_t k = 0; k < count; ++k)
      for (int64_t m = 0; m < members_; ++m) values.push_back(numbers.at<double>(k, m, n));
    put(kNames[n].first, Array::of(std::move(values), {count, members_}), {}, kNames[n].second);
  }
  int64_t rings = 0;
  for (const auto& [name, ring] : kRings) {
    const Array& values = io::find_array(series, name, "flow result");
    rings = values.size(2);
    put(name, values, {"k"}, std::string(name) + " of rings of wavenumbers");
  }
  if (!history_.empty()) {
    const Array rows = packed_history();
    for (int64_t c = 0; c < kHistoryColumns; ++c) {
      std::vector<double> values;
      for (int64_t k = 0; k < rows.size(0); ++k)
        for (int64_t m = 0; m < members_; ++m) values.push_back(rows.at<double>(k, m, c));
      std::vector<std::string> dimensions{"moment"};
      Sizes shape{rows.size(0)};
      if (members_ > 1) dimensions.push_back("member"), shape.push_back(members_);
      all.push_back({fmt::format("history_{}", kHistory[c].name),
                     dimensions,
                     Array::of(std::move(values), shape),
                     {{"long_name", kHistory[c].long_name}}});
    }
  }
  all.push_back({"x", {"x"}, points(grid_.nx, grid_.dx()), {{"axis", "X"}}});
  all.push_back({"y", {"y"}, points(grid_.ny, grid_.dy()), {{"axis", "Y"}}});
  all.push_back(
      {"k", {"k"}, points(rings, 2 * kPi / std::max(grid_.lx, grid_.ly)), {{"long_name", "wavenumber"}}});
  return all;
}

fs::path Series::write_result(RunOptions::Format format) const {
  constexpr auto kTitle = "two-dimensional turbulence";
  const std::vector<io::NetcdfVariable> all = variables();
  if (format == RunOptions::Format::nc) {
    const std::string missing = io::netcdf_missing();
    if (missing.empty()) {
      const fs::path file = folder_ / "run.nc";
      io::write_netcdf(file, all, {{"Conventions", "CF-1.8"}, {"title", kTitle}});
      return file;
    }
    logging::line(fmt::format("flow run: run.npz instead of run.nc: {}", missing));  // also under --quiet
  }
  io::NpzArrays arrays;
  for (const io::NetcdfVariable& v : all) arrays.emplace_back(v.name, v.values);
  const fs::path file = folder_ / "run.npz";
  io::write_npz(file, arrays, io::NpzCompression::stored, {.title = kTitle});
  return file;
}

void Series::remove_fields() const {
  for (int64_t k = 0; k < size(); ++k)
    Folder::of_output(field_file(k)).remove(field_file(k).filename().string());
  std::error_code ignored;
  fs::remove(fields_, ignored);
}

}  // namespace lockstep::flow
