#include "io/arrays/netcdf_arrays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <optional>

#include "core/files/atomic_file.hpp"
#include "core/record/journal.hpp"
#include "core/record/stamp.hpp"
#include "io/rasters/netcdf/netcdf_api.hpp"
#include "io/text/input_memory.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr int kNetcdf4 = 0x1000, kFloat = 5, kDouble = 6, kGlobal = -1, kMostRank = 16;
constexpr int64_t kMostElements = int64_t{1} << 34;

/// An open file whose calls are checked.
class File {
 public:
  explicit File(std::string where) : api_(require_netcdf(where)), where_(std::move(where)) {}
  ~File() {
    if (id_ >= 0) api_.nc_close(id_);
  }
  File(const File&) = delete;
  void create(const std::string& path) { check(api_.nc_create(path.c_str(), kNetcdf4, &id_)); }
  void open(const std::string& path) {
    check_netcdf(path);
    check(api_.nc_open(path.c_str(), 0, &id_));
    journal::input(path);
  }
  void close() { check(api_.nc_close(std::exchange(id_, -1))); }
  void check(int error) const {
    if (error != 0)
      throw InputError(api_.nc_strerror(error), where_, "a NetCDF file that can be read or written");
  }
  const NetcdfApi& api() const { return api_; }
  int id() const { return id_; }

 private:
  const NetcdfApi& api_;
  std::string where_;
  int id_ = -1;
};

void put_attributes(const File& file, int variable,
                    const std::vector<std::pair<std::string, std::string>>& attributes) {
  for (const auto& [name, text] : attributes)
    file.check(file.api().nc_put_att_text(file.id(), variable, name.c_str(), text.size(), text.c_str()));
}

}  // namespace

std::string netcdf_missing() { return netcdf_unavailable_reason(); }

void write_netcdf(const std::filesystem::path& path, const std::vector<NetcdfVariable>& variables,
                  const std::vector<std::pair<std::string, std::string>>& attributes) {
  AtomicPath target(path);
  File file(path.string());
  file.create(target.temporary().string());
  std::map<std::string, int> dimensions;
  std::vector<int> ids;
  for (const NetcdfVariable& v : variables) {
    std::vector<int> axes;
    for (size_t a = 0; a < v.dimensions.size(); ++a) {
      const auto [at, is_new] = dimensions.try_emplace(v.dimensions[a], 0);
      if (is_new)
        file.check(file.api().nc_def_dim(file.id(), v.dimensions[a].c_str(), size_t(v.values.size(int(a))),
                                         &at->second));
      axes.push_back(at->second);
    }
    int id = 0;
    const bool single = v.values.storage() == Storage::f32;
    file.check(file.api().nc_def_var(file.id(), v.name.c_str(), single ? kFloat : kDouble, int(axes.size()),
                                     axes.data(), &id));
    put_attributes(file, id, v.attributes);
    ids.push_back(id);
  }
  put_attributes(file, kGlobal, attributes);
  const record::Stamp stamp = record::stamp();
  put_attributes(file, kGlobal, {{"program", stamp.program}});
  if (!stamp.run.empty()) put_attributes(file, kGlobal, {{record::kRunName, stamp.run}});
  file.check(file.api().nc_enddef(file.id()));
  for (size_t k = 0; k < variables.size(); ++k) {
    const Array values = variables[k].values.packed();
    if (values.storage() == Storage::f32) {
      const std::vector<size_t> first(values.shape().size(), 0),
          count(values.shape().begin(), values.shape().end());
      file.check(file.api().nc_put_vara_float(file.id(), ids[k], first.data(), count.data(),
                                              values.as<float>().data()));
    } else {
      const Array doubles = values.to(Storage::f64);
      file.check(file.api().nc_put_var_double(file.id(), ids[k], doubles.as<double>().data()));
    }
  }
  file.close();
  target.commit();
}

namespace {

constexpr int kAbsent = -1;

/// A variable's number and shape; kAbsent where the file has none of the name.
int find_variable(const File& file, const std::string& name, const std::string& where, Sizes& shape) {
  constexpr int kByte = 1, kText = 2, kLastNumber = 11;
  int id = 0, rank = 0, type = 0;
  if (file.api().nc_inq_varid(file.id(), name.c_str(), &id) != 0) return kAbsent;
  file.check(file.api().nc_inq_vartype(file.id(), id, &type));
  if (type < kByte || type == kText || type > kLastNumber)
    throw InputError(fmt::format("{} holds no numbers", name), where, "a numeric variable");
  file.check(file.api().nc_inq_varndims(file.id(), id, &rank));
  if (rank > kMostRank) throw InputError(fmt::format("{} of {} axes", name, rank), where, "at most 16");
  std::vector<int> axes(static_cast<size_t>(rank));
  file.check(file.api().nc_inq_vardimid(file.id(), id, axes.data()));
  int64_t count = 1;
  shape.clear();
  for (const int axis : axes) {
    size_t length = 0;
    file.check(file.api().nc_inq_dimlen(file.id(), axis, &length));
    if (length > size_t(kMostElements) || (count > 0 && int64_t(length) > kMostElements / count))
      throw InputError(fmt::format("{} of too many numbers", name), where, "at most 2^34");
    shape.push_back(int64_t(length));
    count *= int64_t(length);
  }
  return id;
}

/// The library unpacks whole chunks, even if only a part of a chunk is requested.
InputClaim claim_of_chunk(const File& file, int id, const std::string& name, const std::string& where,
                          size_t rank) {
  constexpr int kChunked = 0;
  int storage = kChunked;
  std::vector<size_t> sizes(std::max<size_t>(rank, 1), 1);
  file.check(file.api().nc_inq_var_chunking(file.id(), id, &storage, sizes.data()));
  if (storage != kChunked) return {};
  double elements = 1;
  for (const size_t n : sizes) elements *= double(n);
  return {elements * sizeof(double), fmt::format("a chunk of {}", name), where};
}

/// `count` elements along each axis from `first` on, as f64 with their share of the budget.
Array part_of(const File& file, int id, const std::string& name, const std::string& where,
              const std::vector<size_t>& first, const Sizes& count) {
  double elements = 1;
  for (const int64_t n : count) elements *= double(n);
  const InputClaim chunk = claim_of_chunk(file, id, name, where, count.size());
  InputClaim claim(elements * sizeof(double), name, where);
  std::vector<double> values(static_cast<size_t>(elements));
  const std::vector<size_t> counts(count.begin(), count.end());
  if (!values.empty())
    file.check(file.api().nc_get_vara_double(file.id(), id, first.data(), counts.data(), values.data()));
  return claimed(Array::of(std::move(values), count), std::move(claim));
}

}  // namespace

NpzArrays read_netcdf(const std::filesystem::path& path, const std::vector<std::string>& names) {
  const std::string where = path.string();
  return within_memory(where, [&] {
    File file(where);
    file.open(where);
    NpzArrays arrays;
    for (const std::string& name : names) {
      Sizes shape;
      const int id = find_variable(file, name, where, shape);
      if (id == kAbsent) continue;
      arrays.emplace_back(name, part_of(file, id, name, where, std::vector<size_t>(shape.size(), 0), shape));
    }
    return arrays;
  });
}

NpzArrays read_netcdf(const std::filesystem::path& path) {
  constexpr int kText = 2, kLastNumber = 11, kLongestName = 256;
  std::vector<std::string> names;
  {
    File file(path.string());
    file.open(path.string());
    int count = 0;
    file.check(file.api().nc_inq_nvars(file.id(), &count));
    for (int id = 0; id < count; ++id) {
      char name[kLongestName + 1] = {};
      int type = 0;
      file.check(file.api().nc_inq_varname(file.id(), id, name));
      file.check(file.api().nc_inq_vartype(file.id(), id, &type));
      if (type != kText && type <= kLastNumber) names.emplace_back(name);
    }
  }
  return read_netcdf(path, names);
}

Sizes netcdf_shape(const std::filesystem::path& path, const std::string& name) {
  const std::string where = path.string();
  File file(where);
  file.open(where);
  Sizes shape;
  if (find_variable(file, name, where, shape) == kAbsent)
    throw InputError(fmt::format("no variable '{}'", name), where, "a NetCDF file that has it");
  return shape;
}

Array read_netcdf_frame(const std::filesystem::path& path, const std::string& name, int64_t frame) {
  const std::string where = path.string();
  return within_memory(where, [&] {
    File file(where);
    file.open(where);
    Sizes shape;
    const int id = find_variable(file, name, where, shape);
    if (id == kAbsent || shape.empty() || frame < 0 || frame >= shape[0])
      throw InputError(fmt::format("no frame {} of '{}'", frame, name), where, "a NetCDF file that has it");
    std::vector<size_t> first(shape.size(), 0);
    first[0] = static_cast<size_t>(frame);
    shape[0] = 1;
    return part_of(file, id, name, where, first, shape)[0];
  });
}

struct NetcdfInput::State {
  std::string where;
  File file;
  explicit State(const std::filesystem::path& path) : where(path.string()), file(where) { file.open(where); }
  int id_of(const std::string& variable) const {
    int id = 0;
    if (file.api().nc_inq_varid(file.id(), variable.c_str(), &id) != 0) return kAbsent;
    return id;
  }
  std::optional<double> number(int id, const char* attribute) const {
    constexpr int kText = 2;
    int type = 0;
    size_t length = 0;
    double value = 0;
    if (file.api().nc_inq_att(file.id(), id, attribute, &type, &length) != 0 || length != 1 || type == kText)
      return {};
    file.check(file.api().nc_get_att_double(file.id(), id, attribute, &value));
    return value;
  }
};

NetcdfInput::NetcdfInput(const std::filesystem::path& path) : state_(std::make_unique<State>(path)) {}
NetcdfInput::~NetcdfInput() = default;

bool NetcdfInput::has(const std::string& variable) const { return state_->id_of(variable) != kAbsent; }

std::vector<std::pair<std::string, int64_t>> NetcdfInput::dimensions(const std::string& variable) const {
  constexpr int kLongestName = 256;
  const State& s = *state_;
  Sizes shape;
  const int id = find_variable(s.file, variable, s.where, shape);
  if (id == kAbsent)
    throw InputError(fmt::format("no variable '{}'", variable), s.where, "a file that has it");
  std::vector<int> axes(shape.size());
  s.file.check(s.file.api().nc_inq_vardimid(s.file.id(), id, axes.data()));
  std::vector<std::pair<std::string, int64_t>> found;
  for (size_t k = 0; k < axes.size(); ++k) {
    char name[kLongestName + 1] = {};
    s.file.check(s.file.api().nc_inq_dimname(s.file.id(), axes[k], name));
    found.emplace_back(name, shape[k]);
  }
  return found;
}

std::string NetcdfInput::text(const std::string& variable, const char* attribute) const {
  constexpr int kText = 2;
  constexpr size_t kLongest = 4096;
  const State& s = *state_;
  const int id = s.id_of(variable);
  int type = 0;
  size_t length = 0;
  if (s.file.api().nc_inq_att(s.file.id(), id, attribute, &type, &length) != 0 || type != kText ||
      length > kLongest)
    return "";
  std::string text(length, '\0');
  s.file.check(s.file.api().nc_get_att_text(s.file.id(), id, attribute, text.data()));
  return text;
}

Array NetcdfInput::read(const std::string& variable, const std::vector<size_t>& first,
                        const Sizes& count) const {
  const State& s = *state_;
  const int id = s.id_of(variable);
  const double scale = s.number(id, "scale_factor").value_or(1),
               offset = s.number(id, "add_offset").value_or(0);
  const auto fill = s.number(id, "_FillValue"), missing = s.number(id, "missing_value");
  Array values = part_of(s.file, id, variable, s.where, first, count);
  for (double& value : values.mutate<double>())
    value =
        value == fill || value == missing ? std::numeric_limits<double>::quiet_NaN() : value * scale + offset;
  return values;
}

bool is_netcdf(const std::filesystem::path& path) {
  std::string head(4, '\0');
  std::ifstream(path, std::ios::binary).read(head.data(), static_cast<std::streamsize>(head.size()));
  return head.starts_with("CDF") || head == "\x89HDF";
}

}  // namespace lockstep::io
