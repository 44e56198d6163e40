#include "io/pictures/mesh_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "io/pictures/drawing.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

using Vec = std::array<double, 3>;  // also linear RGB

constexpr int kSamples = 2;           // along each side of a pixel
constexpr double kFrameShare = 0.07;  // of the frame's sides
constexpr double kFieldOfView = 0.5;  // radians
constexpr Rgb kPaperTop = {250, 251, 252}, kPaperBottom = {228, 232, 238};
constexpr Rgb kFront = {214, 208, 198}, kBack = {150, 172, 196}, kCheckDark = {84, 120, 158},
              kCheckLight = {238, 234, 226};

Vec operator+(const Vec& a, const Vec& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
Vec operator-(const Vec& a, const Vec& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
Vec operator*(const Vec& a, double s) { return {a[0] * s, a[1] * s, a[2] * s}; }
double dot(const Vec& a, const Vec& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
Vec cross(const Vec& a, const Vec& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
Vec unit(const Vec& a) {
  const double length = std::sqrt(dot(a, a));
  return length > 0 ? a * (1 / length) : Vec{0, 0, 0};
}

Vec linear(const Rgb& c) { return {light_of(c[0]), light_of(c[1]), light_of(c[2])}; }
Vec mix(const Vec& a, const Vec& b, double t) { return a * (1 - t) + b * t; }

struct ScreenCorner {
  double x = 0, y = 0;   // samples from the upper left
  double depth = 0;      // larger is further away
  double inverse_w = 1;  // for sums over the triangle that are right in space
};

// Samples with depth; each triangle gives its colour by a function of the weights of its corners.
class Canvas {
 public:
  Canvas(int width, int height) : width_(width * kSamples), height_(height * kSamples) {
    color_.resize(size_t(width_) * size_t(height_));
    depth_.assign(color_.size(), std::numeric_limits<double>::infinity());
    const Vec top = linear(kPaperTop), bottom = linear(kPaperBottom);
    for (int y = 0; y < height_; ++y) {
      const Vec paper = mix(top, bottom, (y + 0.5) / height_);
      std::fill_n(color_.begin() + std::ptrdiff_t(y) * width_, width_, paper);
    }
  }

  // `shade(weights, edge)`: weights of the corners, and the distance to the nearest edge in pixels.
  template <class F>
  void triangle(const std::array<ScreenCorner, 3>& c, F shade) {
    const double area = (c[1].x - c[0].x) * (c[2].y - c[0].y) - (c[1].y - c[0].y) * (c[2].x - c[0].x);
    if (!(std::abs(area) > 1e-12)) return;
    const auto low = [&](double ScreenCorner::* m) { return std::min({c[0].*m, c[1].*m, c[2].*m}); };
    const auto high = [&](double ScreenCorner::* m) { return std::max({c[0].*m, c[1].*m, c[2].*m}); };
    const int x0 = std::max(0, int(std::floor(low(&ScreenCorner::x)))),
              x1 = std::min(width_ - 1, int(high(&ScreenCorner::x)));
    const int y0 = std::max(0, int(std::floor(low(&ScreenCorner::y)))),
              y1 = std::min(height_ - 1, int(high(&ScreenCorner::y)));
    std::array<double, 3> heights;  // of the corners above their opposite edges, in pixels
    for (size_t k = 0; k < 3; ++k) {
      const ScreenCorner &a = c[(k + 1) % 3], &b = c[(k + 2) % 3];
      heights[k] = std::abs(area) / std::max(std::hypot(b.x - a.x, b.y - a.y), 1e-12) / kSamples;
    }
    for (int y = y0; y <= y1; ++y) {
      for (int x = x0; x <= x1; ++x) {
        const double px = x + 0.5, py = y + 0.5;
        std::array<double, 3> w;
        for (size_t k = 0; k < 3; ++k) {
          const ScreenCorner &a = c[(k + 1) % 3], &b = c[(k + 2) % 3];
          w[k] = ((b.x - a.x) * (py - a.y) - (b.y - a.y) * (px - a.x)) / area;
        }
        if (w[0] < 0 || w[1] < 0 || w[2] < 0) continue;
        const double depth = w[0] * c[0].depth + w[1] * c[1].depth + w[2] * c[2].depth;
        const size_t at = size_t(y) * size_t(width_) + size_t(x);
        if (depth >= depth_[at]) continue;
        depth_[at] = depth;
        const double edge = std::min({w[0] * heights[0], w[1] * heights[1], w[2] * heights[2]});
        double total = 0;
        for (size_t k = 0; k < 3; ++k) total += w[k] *= c[k].inverse_w;
        for (double& weight : w) weight /= total;
        color_[at] = shade(w, edge);
      }
    }
  }

  Image image() const {
    Image out(width_ / kSamples, height_ / kSamples, 3);
    for (int y = 0; y < out.height; ++y) {
      for (int x = 0; x < out.width; ++x) {
        Vec sum{0, 0, 0};
        for (int v = 0; v < kSamples; ++v)
          for (int u = 0; u < kSamples; ++u)
            sum = sum + color_[size_t(y * kSamples + v) * size_t(width_) + size_t(x * kSamples + u)];
        for (int k = 0; k < 3; ++k) out.at(x, y)[k] = srgb_of(sum[size_t(k)] / (kSamples * kSamples));
      }
    }
    return out;
  }

  int width() const { return width_; }
  int height() const { return height_; }

 private:
  int width_, height_;
  std::vector<Vec> color_;
  std::vector<double> depth_;
};

void check_mesh(const TriangleMesh& mesh) {
  if (mesh.vertices.empty() || mesh.faces.empty())
    throw InputError("a mesh without vertices or triangles", "mesh picture", "something to draw");
  for (const double x : mesh.vertices)
    if (!std::isfinite(x))
      throw InputError("a position that is not finite", "mesh picture", "finite positions");
  for (const int32_t v : mesh.faces)
    if (v < 0 || v >= mesh.vertex_count())
      throw InputError(fmt::format("a face with vertex {}", v), "mesh picture",
                       fmt::format("0 to {}", mesh.vertex_count() - 1));
}

Vec position(const TriangleMesh& mesh, int32_t v) {
  return {mesh.vertices[size_t(3 * v)], mesh.vertices[size_t(3 * v) + 1], mesh.vertices[size_t(3 * v) + 2]};
}

// Puts points of a plane into the frame, y upwards, evenly scaled.
void fit_frame(std::vector<ScreenCorner>& corners, const Canvas& canvas, const MeshPictureOptions& options) {
  const double left = kFrameShare * canvas.width(), right = (1 - kFrameShare) * canvas.width(),
               bottom = (1 - kFrameShare) * canvas.height(),
               top = kFrameShare * canvas.height() + (options.title.empty() ? 0 : 30 * kSamples);
  double low_x = INFINITY, high_x = -INFINITY, low_y = INFINITY, high_y = -INFINITY;
  for (const ScreenCorner& c : corners) {
    low_x = std::min(low_x, c.x), high_x = std::max(high_x, c.x);
    low_y = std::min(low_y, c.y), high_y = std::max(high_y, c.y);
  }
  const double extent_x = std::max(high_x - low_x, 1e-300), extent_y = std::max(high_y - low_y, 1e-300);
  const double scale = std::min((right - left) / extent_x, (bottom - top) / extent_y);
  for (ScreenCorner& c : corners) {
    c.x = 0.5 * (left + right) + (c.x - 0.5 * (low_x + high_x)) * scale;
    c.y = 0.5 * (top + bottom) - (c.y - 0.5 * (low_y + high_y)) * scale;
  }
}

struct Camera {
  Vec right, up, to_eye;
};
Camera camera_of(const MeshPictureOptions& options) {
  Camera camera;
  camera.to_eye = unit(options.view);
  camera.right = unit(cross(options.up, camera.to_eye));
  camera.up = cross(camera.to_eye, camera.right);
  if (!(dot(camera.to_eye, camera.to_eye) > 0.5 && dot(camera.right, camera.right) > 0.5))
    throw InputError("a view along the upward direction", "mesh picture", "two different directions");
  return camera;
}

std::vector<ScreenCorner> project(const TriangleMesh& mesh, const Camera& camera, bool perspective) {
  Vec low = position(mesh, 0), high = low;
  for (int64_t v = 1; v < mesh.vertex_count(); ++v) {
    const Vec p = position(mesh, int32_t(v));
    for (size_t k = 0; k < 3; ++k) low[k] = std::min(low[k], p[k]), high[k] = std::max(high[k], p[k]);
  }
  const Vec center = (low + high) * 0.5;
  const double radius = std::max(0.5 * std::sqrt(dot(high - low, high - low)), 1e-300);
  const double distance = radius / std::sin(0.5 * kFieldOfView);
  std::vector<ScreenCorner> corners(static_cast<size_t>(mesh.vertex_count()));
  for (size_t v = 0; v < corners.size(); ++v) {
    const Vec p = (position(mesh, int32_t(v)) - center) * (1 / radius);
    const double depth = distance / radius - dot(p, camera.to_eye);
    const double w = perspective ? depth : 1;
    // -1/depth grows with distance and is linear on the screen.
    corners[v] = {dot(p, camera.right) / w, dot(p, camera.up) / w, perspective ? -1 / depth : depth, 1 / w};
  }
  return corners;
}

// Light of a surface whose normal points to the eye's side: a lamp at the eye's upper left, sky above and
// bright ground below.
double light(const Vec& normal, const Camera& camera, const Vec& world_up) {
  static const double kKey = 0.78, kSky = 0.4, kGround = 0.2;
  const Vec lamp = unit(camera.to_eye * 0.75 + camera.up * 0.65 - camera.right * 0.45);
  const double share = 0.5 + 0.5 * dot(normal, world_up);
  return kKey * std::max(0.0, dot(normal, lamp)) + kSky * share + kGround * (1 - share);
}

// The title, and the bar of colours where there are values.
void write_on(Image& image, const MeshPictureOptions& options, const std::optional<ColorRange>& range) {
  constexpr double kSize = 14, kWidth = 16;
  Drawing drawing(image.width, image.height);
  image.texts = {{"Title", options.title.empty() ? "triangle mesh" : options.title}};
  if (!options.unit.empty()) image.texts.emplace_back("Unit", options.unit);
  drawing.text({24, 22 + cap_height(18)}, shortened(options.title, image.width - 48, 18, true),
               {.size = 18, .bold = true});
  if (range) {
    const double height = std::floor(image.height / 3.0);
    const std::string low = fmt::format("{:.3g}", range->low), high = fmt::format("{:.3g}", range->high);
    const double labels = std::max(text_width(low, kSize), text_width(high, kSize));
    const double x = std::floor(image.width - 24 -
                                std::max(kWidth + 8 + labels, text_width(options.unit, kSize))),
                 y = image.height - height - 36;
    for (double v = 0; v < height; ++v)
      drawing.rectangle({x, y + v, x + kWidth, y + v + 1}, color(options.map, 1 - (v + 0.5) / height));
    const double half = 0.5 * cap_height(kSize);
    drawing.text({x + kWidth + 8, y + half}, high, {.size = kSize});
    drawing.text({x + kWidth + 8, y + height + half}, low, {.size = kSize});
    drawing.text({x, y - 18}, options.unit, {.size = kSize});
  }
  drawing.paint(image);
}

void require_entries(size_t entries, int64_t wanted, const char* what) {
  if (int64_t(entries) != wanted)
    throw InputError(fmt::format("{} {}", entries, what), "mesh picture", fmt::format("{}", wanted));
}

/// Twice a triangle's area along its normal.
Vec doubled_normal(const TriangleMesh& mesh, const int32_t* f) {
  return cross(position(mesh, f[1]) - position(mesh, f[0]), position(mesh, f[2]) - position(mesh, f[0]));
}

/// Colours of a mesh under its light: one of its own, its vertices' values, or the squares of a layout.
class Surface {
 public:
  Surface(const TriangleMesh& mesh, const MeshPictureOptions& options, const Camera& camera,
          const ColorRange& range)
      : options_(options), camera_(camera), range_(range), world_up_(unit(options.up)) {
    if (options.smooth) find_normals(mesh);
    if (!options.uv.empty()) check_size_ = side_of_checks(options);
  }

  /// In a triangle with the corners `f` at the weights `w`, `edge` pixels from its nearest edge.
  Vec shade(const int32_t* f, const Vec& facet, bool from_behind, const std::array<double, 3>& w,
            double edge) const {
    Vec normal = facet;
    if (!normals_.empty())
      normal =
          unit(normals_[size_t(f[0])] * w[0] + normals_[size_t(f[1])] * w[1] + normals_[size_t(f[2])] * w[2]);
    if (from_behind) normal = normal * -1.0;
    Vec color = from_behind ? back_ : front_;
    if (!options_.values.empty()) color = by_value(f, w, color);
    if (!options_.uv.empty()) color = by_square(f, w);
    const Vec shaded = color * light(normal, camera_, world_up_);
    return options_.edges ? mix(shaded, ink_, 0.55 * std::clamp(1.0 - edge, 0.0, 1.0)) : shaded;
  }

 private:
  void find_normals(const TriangleMesh& mesh) {
    normals_.assign(size_t(mesh.vertex_count()), {0, 0, 0});
    for (int64_t t = 0; t < mesh.face_count(); ++t) {
      const int32_t* f = &mesh.faces[size_t(3 * t)];
      const Vec doubled = doubled_normal(mesh, f);
      for (int k = 0; k < 3; ++k) normals_[size_t(f[k])] = normals_[size_t(f[k])] + doubled;
    }
    for (Vec& n : normals_) n = unit(n);
  }
  static double side_of_checks(const MeshPictureOptions& options) {
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (size_t k = 0; k < options.uv.size(); ++k) {
      low[k % 2] = std::min(low[k % 2], options.uv[k]);
      high[k % 2] = std::max(high[k % 2], options.uv[k]);
    }
    return std::max({high[0] - low[0], high[1] - low[1], 1e-300}) / std::max(1, options.checks);
  }
  Vec by_value(const int32_t* f, const std::array<double, 3>& w, const Vec& otherwise) const {
    const double value = options_.values[size_t(f[0])] * w[0] + options_.values[size_t(f[1])] * w[1] +
                         options_.values[size_t(f[2])] * w[2];
    return std::isfinite(value) ? linear(color(options_.map, range_.share(value))) : otherwise;
  }
  Vec by_square(const int32_t* f, const std::array<double, 3>& w) const {
    double at[2] = {0, 0};
    for (size_t k = 0; k < 3; ++k)
      for (size_t i = 0; i < 2; ++i) at[i] += w[k] * options_.uv[2 * size_t(f[k]) + i];
    const auto square = int64_t(std::floor(at[0] / check_size_)) + int64_t(std::floor(at[1] / check_size_));
    return square % 2 == 0 ? bright_ : dark_;
  }

  const MeshPictureOptions& options_;
  const Camera& camera_;
  const ColorRange& range_;
  const Vec world_up_;
  const Vec front_ = linear(kFront), back_ = linear(kBack), dark_ = linear(kCheckDark),
            bright_ = linear(kCheckLight), ink_ = linear(kInk);
  std::vector<Vec> normals_;  // of vertices; empty: facets
  double check_size_ = 1;
};

}  // namespace

Image draw_mesh(const TriangleMesh& mesh, const MeshPictureOptions& options) {
  check_mesh(mesh);
  if (!options.values.empty())
    require_entries(options.values.size(), mesh.vertex_count(), "values of vertices");
  if (!options.uv.empty())
    require_entries(options.uv.size(), 2 * mesh.vertex_count(), "numbers (u, v) of vertices");
  const Camera camera = camera_of(options);
  Canvas canvas(options.width, options.height);
  std::vector<ScreenCorner> corners = project(mesh, camera, options.perspective);
  fit_frame(corners, canvas, options);

  const ColorRange range = color_range(options.values, options.map, options.minimum, options.maximum);
  const Surface surface(mesh, options, camera, range);
  for (int64_t t = 0; t < mesh.face_count(); ++t) {
    const int32_t* f = &mesh.faces[size_t(3 * t)];
    const std::array<ScreenCorner, 3> c{corners[size_t(f[0])], corners[size_t(f[1])], corners[size_t(f[2])]};
    // y points down on the screen: fronts run clockwise there.
    const double turn = (c[1].x - c[0].x) * (c[2].y - c[0].y) - (c[1].y - c[0].y) * (c[2].x - c[0].x);
    const bool from_behind = turn > 0;
    const Vec facet = unit(doubled_normal(mesh, f));
    canvas.triangle(c, [&](const std::array<double, 3>& w, double edge) {
      return surface.shade(f, facet, from_behind, w, edge);
    });
  }
  Image image = canvas.image();
  write_on(image, options, options.values.empty() ? std::nullopt : std::optional(range));
  return image;
}

Image draw_uv_layout(const TriangleMesh& mesh, const std::vector<double>& uv,
                     const std::vector<double>& face_values, const MeshPictureOptions& options) {
  check_mesh(mesh);
  require_entries(uv.size(), 2 * mesh.vertex_count(), "numbers (u, v) of vertices");
  if (!face_values.empty()) require_entries(face_values.size(), mesh.face_count(), "values of triangles");
  for (const double x : uv)
    if (!std::isfinite(x)) throw InputError("a (u, v) that is not finite", "mesh picture", "finite numbers");
  Canvas canvas(options.width, options.height);
  std::vector<ScreenCorner> corners(static_cast<size_t>(mesh.vertex_count()));
  for (size_t v = 0; v < corners.size(); ++v) corners[v] = {uv[2 * v], uv[2 * v + 1], 0, 1};
  fit_frame(corners, canvas, options);
  const ColorRange range = color_range(face_values, options.map, options.minimum, options.maximum);
  const Vec plain = linear(kFront), ink = linear(kInk);
  for (int64_t t = 0; t < mesh.face_count(); ++t) {
    const int32_t* f = &mesh.faces[size_t(3 * t)];
    Vec fill = plain;
    if (!face_values.empty() && std::isfinite(face_values[size_t(t)]))
      fill = linear(color(options.map, range.share(face_values[size_t(t)])));
    canvas.triangle({corners[size_t(f[0])], corners[size_t(f[1])], corners[size_t(f[2])]},
                    [&](const std::array<double, 3>&, double edge) {
                      return mix(fill, ink, 0.7 * std::clamp(1.0 - edge, 0.0, 1.0));
                    });
  }
  Image image = canvas.image();
  write_on(image, options, face_values.empty() ? std::nullopt : std::optional(range));
  return image;
}

Image join_images(const std::vector<Image>& images) {
  int width = 0, height = 0;
  for (const Image& image : images) {
    width += image.width;
    height = std::max(height, image.height);
  }
  Image joined(width, height, 3, 255);
  if (!images.empty()) joined.texts = images.back().texts;
  int left = 0;
  for (const Image& image : images) {
    for (int y = 0; y < image.height; ++y) {
      const uint8_t* row = &image.pixels[size_t(y) * size_t(image.width) * 3];
      std::copy(row, row + size_t(image.width) * 3, joined.at(left, y));
    }
    left += image.width;
  }
  return joined;
}

}  // namespace lockstep::io
