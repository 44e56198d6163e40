// How a projected grid lies on the Earth: where its north points, and how long its metres are.
#pragma once

#include <functional>

namespace lockstep::urban {

/// Longitude and latitude (degrees, WGS 84).
struct Place {
  double longitude_deg = 0, latitude_deg = 0;
};

struct GridNorth {
  double convergence_deg = 0;              ///< direction of the grid's north, clockwise from true north
  double scale_east = 1, scale_north = 1;  ///< grid metres per metre on the ground along the grid's axes

  double scale() const;  ///< of both axes: their geometric mean
};

/// At a point of the grid, from the places of points 100 m around it on the WGS 84 ellipsoid: convergence to
/// 1e-6°, scale to 1e-8.
GridNorth grid_north(const std::function<Place(double x, double y)>& place_of, double x, double y);

}  // namespace lockstep::urban
