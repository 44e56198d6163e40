// Polygons of mesh files as fans of triangles, checked.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::io {

/// Adds the polygon's triangles to `faces`. `fail(what, expected)` must throw.
template <class Fail>
void add_fan(const std::vector<int64_t>& polygon, int64_t vertex_count, std::vector<int32_t>& faces,
             const Fail& fail) {
  if (polygon.size() < 3) fail(fmt::format("a face of {} vertices", polygon.size()), "three or more");
  for (const int64_t v : polygon)
    if (v < 0 || v >= vertex_count)
      fail(fmt::format("a face names vertex {}", v + 1),
           fmt::format("one of {}, counted from 1", vertex_count));
  // Large polygons are rare; sorting a copy keeps them from being quadratic.
  std::vector<int64_t> sorted = polygon;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    fail(fmt::format("a face names vertex {} twice", *twice + 1), "different vertices");
  for (size_t k = 1; k + 1 < polygon.size(); ++k)
    for (const size_t corner : {size_t(0), k, k + 1}) faces.push_back(int32_t(polygon[corner]));
}

}  // namespace lockstep::io
