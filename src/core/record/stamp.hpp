// The program and the run that a file of results names.
#pragma once

#include <functional>
#include <string>

namespace lockstep::record {

struct Stamp {
  std::string program;  // "Lockstep 0.1.0"
  std::string run;      // the identity in the record of the run; empty where none is kept
};

/// For writers, when a file is complete: the inputs that were read until then are part of the identity.
Stamp stamp();
/// Of the run that begins; requested once, by the first file. Empty: no record is kept.
void set_run(std::function<std::string()> identity);

/// The name of the run in GeoTIFF, NetCDF, PNG and in the comment of an archive.
inline constexpr auto kRunName = "lockstep_run";

}  // namespace lockstep::record
