// Sky view factors in the file formats of UMEP and SOLWEIG: svfs.zip, shadowmats.npz, SkyViewFactor.tif, as in
// `lockstep urban umep`.
#pragma once

#include <filesystem>
#include <vector>

#include "lockstep/urban.hpp"

namespace lockstep::urban {

struct UmepOptions {
  /// A folder of `urban svf`, which is converted to UMEP's files, or an svfs.zip, which is converted to such a
  /// folder.
  std::filesystem::path from;
  double transmissivity = 0.03;         ///< of plants, in SkyViewFactor.tif
  GridFormat format = GridFormat::tif;  ///< of the grids of an svfs.zip
  std::filesystem::path folder;         ///< of results
};
struct UmepExchange {
  int64_t rows = 0, cols = 0;
  int patches = 0;  ///< of the sky states; 0: none
  std::vector<std::filesystem::path> files;
  std::vector<StageRecord> host_stages;  ///< "convert"
};
/// to_umep() or from_umep(), by the extension of `from`.
UmepExchange run(const UmepOptions& options);

/// Converts the grids of `urban svf` in the folder `from`, with its sky_states.npz if present. Writes to the folder `to`:
/// svfs.zip, shadowmats.npz, and SkyViewFactor.tif, the total with translucent plants,
/// svf − (1 − svf_veg)(1 − transmissivity). Throws InputError for grids that are missing or differ in size, and if GDAL is
/// not available.
UmepExchange to_umep(const std::filesystem::path& from, const std::filesystem::path& to,
                     double transmissivity);

/// The reverse: converts `zip`, and shadowmats.npz next to it if it exists, to the files of `urban svf --save-patches`.
/// Missing grids of plants are set to 1. Throws InputError for any other archive.
UmepExchange from_umep(const std::filesystem::path& zip, const std::filesystem::path& to, GridFormat format);

void describe(Schema<UmepOptions>& s);

}  // namespace lockstep::urban
