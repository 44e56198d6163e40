#include "io/rasters/netcdf/hdf5_content.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "io/rasters/netcdf/netcdf_api.hpp"
#include "io/text/file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

using Id = int64_t;
/// H5G_info_t of HDF5 1.8 and later.
struct GroupInfo {
  int storage;
  unsigned long long links;
  int64_t order;
  bool mounted;
};
constexpr int kGroup = 2, kDataset = 5, kVirtual = 3;  // H5I_GROUP, H5I_DATASET, H5D_VIRTUAL
constexpr int kDeepest = 64;
constexpr int64_t kMostObjects = 100'000;
constexpr const char* kInside = "data inside of the file";

// F(result, name, (parameters))
#define LOCKSTEP_HDF5_FUNCTIONS(F)                                                                          \
  F(int, H5Eset_auto2, (Id stack, void* function, void* data))                                              \
  F(Id, H5Fopen, (const char* path, unsigned flags, Id access))                                             \
  F(int, H5Fclose, (Id file))                                                                               \
  F(ptrdiff_t, H5Fget_name, (Id object, char* name, size_t size))                                           \
  F(Id, H5Gopen2, (Id place, const char* name, Id access))                                                  \
  F(int, H5Gget_info, (Id group, GroupInfo * info))                                                         \
  F(ptrdiff_t, H5Lget_name_by_idx,                                                                          \
    (Id place, const char* group, int index, int order, unsigned long long number, char* name, size_t size, \
     Id access))                                                                                            \
  F(Id, H5Oopen, (Id place, const char* name, Id access))                                                   \
  F(int, H5Oclose, (Id object))                                                                             \
  F(int, H5Iget_type, (Id object))                                                                          \
  F(Id, H5Dget_create_plist, (Id dataset))                                                                  \
  F(int, H5Pget_external_count, (Id properties))                                                            \
  F(int, H5Pget_layout, (Id properties))                                                                    \
  F(int, H5Pclose, (Id properties))

class Content {
 public:
  Content(const DynamicLibrary& netcdf, std::string where) : where_(std::move(where)) {
#define LOCKSTEP_HDF5_LOAD(result, name, parameters) \
  name = netcdf.function<result parameters>(#name);  \
  if (!name)                                         \
    throw UnsupportedError("netCDF hides its HDF5 library", where_, "one whose " #name " can be called");
    LOCKSTEP_HDF5_FUNCTIONS(LOCKSTEP_HDF5_LOAD)
#undef LOCKSTEP_HDF5_LOAD
  }

  void check() {
    H5Eset_auto2(Hdf5Api::kDefault, nullptr, nullptr);  // errors are ours to tell
    const Id file = H5Fopen(where_.c_str(), 0, Hdf5Api::kDefault);
    if (file < 0) return;  // the reader says why
    const Closer closer(file, H5Fclose);
    home_ = name_of(file);
    const Id root = H5Gopen2(file, "/", Hdf5Api::kDefault);
    if (root < 0) return;
    const Closer closes(root, H5Oclose);
    walk(root, 0);
  }

 private:
  struct Closer {
    Closer(Id id, int (*close)(Id)) : id(id), close(close) {}
    ~Closer() { close(id); }
    Closer(const Closer&) = delete;
    const Id id;
    int (*const close)(Id);
  };
  [[noreturn]] void fail(const std::string& what) const { throw InputError(what, where_, kInside); }
  std::string name_of(Id object) const {
    std::array<char, 4096> name{};
    return H5Fget_name(object, name.data(), name.size()) < 0 ? "" : name.data();
  }
  void walk(Id group, int depth) {
    GroupInfo info{};
    if (depth > kDeepest || H5Gget_info(group, &info) < 0) fail("groups that cannot be followed");
    for (unsigned long long k = 0; k < info.links; ++k) {
      std::array<char, 1024> name{};
      if (++objects_ > kMostObjects) fail(fmt::format("more than {} objects", kMostObjects));
      if (H5Lget_name_by_idx(group, ".", 0, 0, k, name.data(), name.size(), Hdf5Api::kDefault) < 0)
        fail("a link without a name");
      const Id object = H5Oopen(group, name.data(), Hdf5Api::kDefault);
      if (object < 0) fail("a link that leads out of the file or nowhere");
      const Closer closer(object, H5Oclose);
      if (name_of(object) != home_) fail("a link to another file");
      const int type = H5Iget_type(object);
      if (type == kGroup) walk(object, depth + 1);
      if (type == kDataset) check_dataset(object);
    }
  }
  void check_dataset(Id dataset) const {
    const Id properties = H5Dget_create_plist(dataset);
    if (properties < 0) fail("a dataset without properties");
    const Closer closer(properties, H5Pclose);
    if (H5Pget_external_count(properties) != 0) fail("a dataset whose data are in another file");
    if (H5Pget_layout(properties) == kVirtual) fail("a virtual dataset");
  }

#define LOCKSTEP_HDF5_POINTER(result, name, parameters) result(*name) parameters = nullptr;
  LOCKSTEP_HDF5_FUNCTIONS(LOCKSTEP_HDF5_POINTER)
#undef LOCKSTEP_HDF5_POINTER
  const std::string where_;
  std::string home_;
  int64_t objects_ = 0;
};

/// The signature is at the beginning, or after a block of 512, 1024, 2048 … bytes.
bool is_hdf5(const std::filesystem::path& path) {
  constexpr std::array<unsigned char, 8> kSignature{0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  const InputFile file(path, "a NetCDF file");
  if (!file.is_regular()) return false;
  for (uint64_t at = 0; at + kSignature.size() <= file.size(); at = at == 0 ? 512 : 2 * at) {
    std::array<std::byte, kSignature.size()> found{};
    if (!read_at(file.descriptor(), at, found)) return false;
    if (std::memcmp(found.data(), kSignature.data(), found.size()) == 0) return true;
  }
  return false;
}

}  // namespace

void check_hdf5_content(const std::filesystem::path& path) {
  if (!is_hdf5(path)) return;
  static std::mutex guard;  // the library has no locks of its own
  const std::lock_guard lock(guard);
  Content(require_netcdf(path.string()).library, path.string()).check();
}

}  // namespace lockstep::io
