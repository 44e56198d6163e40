#include "io/rasters/gdal/gdal_api.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>
#include <string_view>
#include <vector>

#include "core/dynamic_library.hpp"
#include "io/rasters/raster.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr int kNewestLibrary = 44, kOldestLibrary = 26;  // libgdal.so.26 is GDAL 3.0, .32 is 3.6, .36 is 3.10
// Blocks that tiles of a city have filled in part wait in the cache; GDAL's own bound, 5 % of the machine's
// memory, ignores the limit of a container.
constexpr int64_t kCacheBytes = int64_t{256} << 20;
constexpr const char* kPackage =
    "GDAL 3 (Debian 12: apt install libgdal32; Debian 13: libgdal36; Ubuntu 24.04: libgdal34t64)";

LibrarySearch gdal_search() {
  LibrarySearch search;
  for (int version = kNewestLibrary; version >= kOldestLibrary; --version)
    search.names.push_back(fmt::format("libgdal.so.{}", version));
  search.names.push_back("libgdal.so");
  return search;
}

std::string folders_text(const LibrarySearch& search) {
  std::vector<std::string> folders;
  for (const auto& folder : LibrarySearch::folders_before_system()) folders.push_back(folder.string());
  folders.push_back("the system's folders");
  for (const auto& folder : search.folders_after_system()) folders.push_back(folder.string());
  return fmt::format("{}", fmt::join(folders, ", "));
}

/// Those of kVectorDrivers, taken out of GDAL's list; empty where another part of the process uses GDAL too.
std::vector<GdalHandle>& set_aside() {
  static auto* drivers = new std::vector<GdalHandle>;
  return *drivers;
}
std::mutex& vector_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}
bool is_listed(const char* const* names, std::string_view name) {
  for (; *names; ++names)
    if (name == *names) return true;
  return false;
}

/// GDAL opens a mask or an overview next to a raster with any driver that supports it: only listed ones may.
void leave_listed_drivers(const GdalApi& api) {
  constexpr std::string_view kOwn[] = {"VRT", "MEM", "COG"};
  for (int k = api.GDALGetDriverCount(); k-- > 0;) {
    const GdalHandle driver = api.GDALGetDriver(k);
    const char* const text = api.GDALGetDriverShortName(driver);
    const std::string_view name = text ? text : "";
    if (std::find(std::begin(kOwn), std::end(kOwn), name) != std::end(kOwn)) continue;
    if (is_listed(kRasterDrivers, name)) continue;
    api.GDALDeregisterDriver(driver);
    if (is_listed(kVectorDrivers, name))
      set_aside().push_back(driver);
    else
      api.GDALDestroyDriver(driver);
  }
}

struct LoadedGdal {
  std::optional<GdalApi> api;
  std::string reason;  // why there is none
};

/// Never closed: GDAL's threads may outlive the last dataset.
const LoadedGdal& gdal() {
  static const LoadedGdal& loaded = *new LoadedGdal([] {
    LoadedGdal made;
    made.api = load_gdal(gdal_search(), made.reason);
    if (!made.api) return made;
    // Where another part of the process uses GDAL too, its formats stay as they are.
    const bool alone = made.api->GDALGetDriverCount() == 0;
    made.api->GDALAllRegister();
    if (alone) leave_listed_drivers(*made.api);
    if (!made.api->CPLGetConfigOption("GDAL_CACHEMAX", nullptr)) made.api->GDALSetCacheMax64(kCacheBytes);
    return made;
  }());
  return loaded;
}

}  // namespace

const char* const kRasterDrivers[] = {"GTiff",   "AAIGrid", "GRASSASCIIGrid", "HFA",  "ENVI",        "EHdr",
                                      "AIG",     "USGSDEM", "SRTMHGT",        "DTED", "SDTS",        "XYZ",
                                      "GSAG",    "GSBG",    "GS7BG",          "RST",  "SAGA",        "BT",
                                      "ERS",     "PNG",     "JPEG",           "BMP",  "JP2OpenJPEG", "JP2KAK",
                                      "JP2ECW",  "JP2Lura", "netCDF",         "GMT",  "PCIDSK",      "LCP",
                                      "NWT_GRD", "ISG",     nullptr};

const char* const kVectorDrivers[] = {"GPKG", "ESRI Shapefile", nullptr};

VectorFormats::VectorFormats(const GdalApi& api) : api_(api) {
  vector_mutex().lock();
  for (const GdalHandle driver : set_aside()) api_.GDALRegisterDriver(driver);
}
VectorFormats::~VectorFormats() {
  for (const GdalHandle driver : set_aside()) api_.GDALDeregisterDriver(driver);
  vector_mutex().unlock();
}

std::optional<GdalApi> load_gdal(const LibrarySearch& search, std::string& reason) {
  std::string why;
  const DynamicLibrary library = search.load(&why);
  if (!library) {
    const bool broken = why.find("No such file") == std::string::npos;
    reason = broken ? why
                    : fmt::format("none of {} to {} in {}", search.names.front(), search.names.back(),
                                  folders_text(search));
    return std::nullopt;
  }
  GdalApi api;
  api.library = library;
#define LOCKSTEP_GDAL_LOAD(result, name, parameters)                      \
  api.name = library.function<result parameters>(#name);                  \
  if (!api.name) {                                                        \
    reason = fmt::format("{} has no function {}", library.path(), #name); \
    return std::nullopt;                                                  \
  }
  LOCKSTEP_GDAL_FUNCTIONS(LOCKSTEP_GDAL_LOAD)
#undef LOCKSTEP_GDAL_LOAD
  return api;
}

void throw_no_gdal(const std::string& reason, const std::string& where) {
  throw UnsupportedError(fmt::format("GDAL cannot be loaded ({})", reason), where, kPackage)
      .with_hint(
          "without it .npy rasters work; a libgdal elsewhere is found through LOCKSTEP_LIBRARY_PATH=FOLDER");
}

const GdalApi* find_gdal() { return gdal().api ? &*gdal().api : nullptr; }

const GdalApi& require_gdal(const std::string& where) {
  if (!gdal().api) throw_no_gdal(gdal().reason, where);
  return *gdal().api;
}

std::string gdal_unavailable_reason() { return gdal().reason; }

GdalQuiet::GdalQuiet(const GdalApi& api) : api_(api) {
  api_.CPLPushErrorHandler([](int, int, const char*) {});
  api_.CPLErrorReset();
}

std::string GdalQuiet::message(const std::string& what) const {
  const std::string detail = api_.CPLGetLastErrorMsg();
  std::string text = detail.empty() ? what : what + ": " + detail;
  std::replace_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

}  // namespace lockstep::io
