#include "urban/sky/patches.hpp"

#include <fmt/format.h>

#include <span>

#include "lockstep/error.hpp"

namespace lockstep::urban {
namespace {

struct Ring {
  double altitude_deg;
  int count;
  double start_deg;
};

constexpr Ring kRings145[] = {{6, 30, 0},  {18, 30, 4}, {30, 24, 2}, {42, 24, 5},
                              {54, 18, 8}, {66, 12, 0}, {78, 6, 10}, {90, 1, 0}};
constexpr Ring kRings153[] = {{6, 31, 0},  {18, 30, 4}, {30, 28, 2}, {42, 24, 5},
                              {54, 19, 8}, {66, 13, 0}, {78, 7, 10}, {90, 1, 0}};
constexpr Ring kRings305[] = {{6, 62, 0},  {18, 60, 4}, {30, 56, 2},  {42, 48, 5},
                              {54, 38, 8}, {66, 26, 0}, {78, 14, 10}, {90, 1, 0}};
constexpr Ring kRings609[] = {{3, 62, 0},  {9, 62, 0},  {15, 60, 4},  {21, 60, 4},  {27, 56, 2},
                              {33, 56, 2}, {39, 48, 5}, {45, 48, 5},  {51, 38, 8},  {57, 38, 8},
                              {63, 26, 0}, {69, 26, 0}, {75, 14, 10}, {81, 14, 10}, {90, 1, 0}};
constexpr double kEdges12[] = {0, 12, 24, 36, 48, 60, 72, 84, 90};

std::span<const Ring> rings(SkyPatches kind) {
  switch (kind) {
    case SkyPatches::p145: return kRings145;
    case SkyPatches::p153: return kRings153;
    case SkyPatches::p305: return kRings305;
    case SkyPatches::p609: return kRings609;
  }
  throw InternalError("unknown sky division", "urban", "one of four");
}

std::vector<double> annulus_edges(SkyPatches kind, AnnulusEdges edges) {
  if (kind != SkyPatches::p609) return {std::begin(kEdges12), std::end(kEdges12)};
  std::vector<double> list = {0};
  if (edges == AnnulusEdges::centred) {
    for (double edge = 6; edge <= 84; edge += 6) list.push_back(edge);
  } else {
    list.push_back(edges == AnnulusEdges::umep ? 4.5 : 4.0);
    for (double edge = 9; edge <= 81; edge += 6) list.push_back(edge);
  }
  list.push_back(90);
  return list;
}

}  // namespace

SkyDivision sky_division(SkyPatches kind, AnnulusEdges edges) {
  SkyDivision sky;
  const std::vector<double> edge = annulus_edges(kind, edges);
  for (const Ring& ring : rings(kind)) {
    const size_t band = sky.bands.size();
    sky.bands.push_back({ring.altitude_deg, ring.count, ring.start_deg, edge[band], edge[band + 1],
                         static_cast<int>(sky.patches.size())});
    for (int j = 0; j < ring.count; ++j) {
      double azimuth = j * (360.0 / ring.count) + ring.start_deg;
      if (azimuth >= 360.0) azimuth -= 360.0;
      sky.patches.push_back({azimuth, ring.altitude_deg});
      sky.band_of_patch.push_back(static_cast<int>(band));
    }
  }
  return sky;
}

int patch_count(SkyPatches kind) {
  int count = 0;
  for (const Ring& ring : rings(kind)) count += ring.count;
  return count;
}

SkyPatches patches_from_count(int count) {
  switch (count) {
    case 145: return SkyPatches::p145;
    case 153: return SkyPatches::p153;
    case 305:
    case 306: return SkyPatches::p305;
    case 609:
    case 612: return SkyPatches::p609;
    default: throw InputError(fmt::format("{} sky patches", count), "patches", "145, 153, 305 or 609");
  }
}

bool in_sector(double azimuth_deg, Sector sector) {
  switch (sector) {
    case Sector::whole: return true;
    case Sector::east: return azimuth_deg >= 0 && azimuth_deg < 180;
    case Sector::south: return azimuth_deg >= 90 && azimuth_deg < 270;
    case Sector::west: return azimuth_deg >= 180 && azimuth_deg < 360;
    case Sector::north: return azimuth_deg >= 270 || azimuth_deg < 90;
  }
  return false;
}

}  // namespace lockstep::urban
