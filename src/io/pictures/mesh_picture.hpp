// Pictures of triangle meshes: shaded with a depth buffer, or laid out flat.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "io/meshes/mesh.hpp"
#include "io/pictures/colormap.hpp"
#include "io/pictures/png.hpp"

namespace lockstep::io {

struct MeshPictureOptions {
  std::string title;
  int width = 900, height = 720;
  std::array<double, 3> view = {1.0, -1.7, 0.9};  ///< from the mesh to the eye
  std::array<double, 3> up = {0, 0, 1};           ///< upwards in the picture; not along `view`
  bool perspective = true;                        ///< else parallel rays
  bool smooth = false;                            ///< light by averaged normals of vertices, not by facet
  bool edges = false;                             ///< edges of triangles as dark lines

  /// One number per vertex, shown as colours with a bar; NaN shows the plain surface.
  std::vector<double> values;
  std::string unit;                        ///< above the bar
  ColorMap map = ColorMap::heat;           ///< of the values
  std::optional<double> minimum, maximum;  ///< of the colours; default: those of the values
  /// (u, v) per vertex: shows a chequered surface instead, `checks` squares across the longer side.
  std::vector<double> uv;
  int checks = 24;
};

/// The whole mesh, fitted into the frame; 2 x 2 samples a pixel. Sides seen from behind are shown in another
/// tone. Throws InputError where values or uv have not one entry a vertex, or where the mesh is empty, has
/// positions that are not finite, or faces with vertices that do not exist.
Image draw_mesh(const TriangleMesh& mesh, const MeshPictureOptions& options);

/// The triangles at their (u, v), edges drawn, coloured by `values` per triangle (none: plain).
Image draw_uv_layout(const TriangleMesh& mesh, const std::vector<double>& uv,
                     const std::vector<double>& face_values, const MeshPictureOptions& options);

/// Pictures of one height next to each other.
Image join_images(const std::vector<Image>& images);

}  // namespace lockstep::io
