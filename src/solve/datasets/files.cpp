#include "lockstep/solve/files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <iterator>
#include <unordered_map>

#include "core/files/atomic_file.hpp"
#include "io/text/file.hpp"
#include "io/text/input_memory.hpp"
#include "io/text/seeded_hash.hpp"
#include "io/text/text_scanner.hpp"
#include "io/text/unpack.hpp"
#include "lockstep/error.hpp"
#include "solve/datasets/bal.hpp"
#include "solve/datasets/g2o.hpp"
#include "solve/datasets/pose_graph_start.hpp"

namespace lockstep::solve {
namespace {

/// Claims what becomes of the text, too, until the reader around is done.
std::string text_of(const std::filesystem::path& file, const char* expected) {
  constexpr double kBytesOfCharacter =
      20;  // a point of 16 characters is 72 bytes in a growing list, and an entry of a table
  std::string text = io::unpack_text(io::read_text_file(file, expected), file.string());
  io::ReaderScope::keep({kBytesOfCharacter * double(text.size()), "what it holds", file.string()});
  return text;
}

/// Unit quaternions from their parts in any length.
void unit(double* q, const io::TextScanner& scan) {
  const double length = std::hypot(std::hypot(q[0], q[1]), std::hypot(q[2], q[3]));
  if (!(length > 1e-12) || !std::isfinite(length)) scan.fail("a zero quaternion", "a rotation");
  for (int k = 0; k < 4; ++k) q[k] /= length;
}

/// The layout of a COLMAP camera in a problem: the model, the places of the parameters in it, what is held.
struct CameraLayout {
  const char* name;
  CameraModel model;
  std::vector<int> places, held;
};
const CameraLayout& layout_of(const std::string& name, const std::string& where) {
  static const std::vector<CameraLayout> kLayouts = {
      {"SIMPLE_PINHOLE", CameraModel::radial, {0, 1, 2}, {3, 4}},
      {"PINHOLE", CameraModel::pinhole, {0, 1, 2, 3}, {}},
      {"SIMPLE_RADIAL", CameraModel::radial, {0, 1, 2, 3}, {4}},
      {"RADIAL", CameraModel::radial, {0, 1, 2, 3, 4}, {}},
      {"OPENCV", CameraModel::brown_conrady, {0, 1, 2, 3, 4, 5, 6, 7}, {8}},
      {"OPENCV_FISHEYE", CameraModel::fisheye, {0, 1, 2, 3, 4, 5, 6, 7}, {}},
  };
  for (const CameraLayout& layout : kLayouts)
    if (name == layout.name) return layout;
  throw InputError(fmt::format("camera model '{}'", io::shown(name)), where,
                   "SIMPLE_PINHOLE, PINHOLE, SIMPLE_RADIAL, RADIAL, OPENCV or OPENCV_FISHEYE");
}

template <class F>
void each_line(const std::string& text, const std::string& where, F f) {
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    if (line.starts_with('#')) continue;
    f(line, fmt::format("{}:{}", where, number + 1));
  }
}

constexpr const char* kColmap = "a model in COLMAP's text format";
using Places = std::unordered_map<int64_t, int32_t, io::SeededHash>;

int32_t place_of(const Places& places, int64_t id, const char* what, const io::TextScanner& scan) {
  const auto found = places.find(id);
  if (found == places.end()) scan.fail(fmt::format("{} {}", what, id), "one of the model's files");
  return found->second;
}

Places read_cameras(const std::filesystem::path& file, ColmapModel& model) {
  const std::string text = text_of(file, kColmap);
  io::TextScanner scan(text, file.string());
  Places places;
  while (scan.next_line()) {
    ColmapModel::Camera camera;
    camera.id = scan.integer("the camera's id", 0);
    camera.model = scan.field();
    const CameraLayout& layout = layout_of(camera.model, scan.where());
    camera.width = scan.integer("the width", 1), camera.height = scan.integer("the height", 1);
    for (size_t k = 0; k < layout.places.size(); ++k)
      camera.parameters.push_back(scan.number("a parameter of the camera"));
    scan.end_line("the end of the line after the parameters");
    if (!places.emplace(camera.id, int32_t(model.cameras.size())).second)
      scan.fail(fmt::format("camera {} is repeated", camera.id), "each camera once");
    model.cameras.push_back(std::move(camera));
  }
  return places;
}

Places read_points(const std::filesystem::path& file, ColmapModel& model) {
  const std::string text = text_of(file, kColmap);
  io::TextScanner scan(text, file.string());
  Places places;
  while (scan.next_line()) {
    ColmapModel::Point point;
    point.id = scan.integer("the point's id", 0);
    for (double& x : point.position) x = scan.number("a coordinate of the point");
    for (int& c : point.color) c = int(scan.integer("a color of the point", 0, 255));
    point.error = scan.number("the point's error");
    if (!places.emplace(point.id, int32_t(model.points.size())).second)
      scan.fail(fmt::format("point {} is repeated", point.id), "each point once");
    model.points.push_back(point);
  }
  return places;
}

/// Two lines an image, of which the second may be empty.
void read_images(const std::filesystem::path& file, const Places& cameras, const Places& points,
                 ColmapModel& model) {
  const std::string text = text_of(file, kColmap);
  bool second = false;
  each_line(text, file.string(), [&](std::string_view line, const std::string& where) {
    io::TextScanner scan(line, where);
    if (!scan.next_line('\0')) {
      second = false;
      return;
    }
    if (second) {
      ColmapModel::Image& image = model.images.back();
      while (!scan.at_line_end()) {
        image.pixels.push_back(scan.number("x of an observation"));
        image.pixels.push_back(scan.number("y of an observation"));
        const int64_t id = scan.integer("the point of an observation", -1);
        image.points.push_back(id < 0 ? -1 : place_of(points, id, "point", scan));
      }
      second = false;
      return;
    }
    ColmapModel::Image& image = model.images.emplace_back();
    image.id = scan.integer("the image's id", 0);
    for (const size_t k : {3, 4, 5, 6}) image.pose[k] = scan.number("the quaternion");
    for (const size_t k : {0, 1, 2}) image.pose[k] = scan.number("the translation");
    unit(&image.pose[3], scan);
    image.camera = place_of(cameras, scan.integer("the image's camera", 0), "camera", scan);
    image.name = scan.rest_of_line();
    second = true;
  });
}

}  // namespace

PoseGraphFile read_pose_graph(const std::filesystem::path& file, const RobustLoss& loss) {
  io::PoseGraph graph = io::read_g2o(file);
  if (!graph.has_poses) start_from_tree(graph);
  PoseGraphProblem made = build(graph, loss);
  return {graph.dimension, graph.ids,      graph.landmarks.ids,  std::move(made.problem),
          made.poses,      made.landmarks, std::move(made.lines)};
}

BundleFile read_bundle(const std::filesystem::path& file, const RobustLoss& loss) {
  io::BalProblem bal = io::read_bal(file);
  BalGraph made = build(bal, file.string(), loss);
  return {std::move(made.problem),
          made.cameras,
          made.points,
          {{snavely_observation().name, std::move(bal.lines)}}};
}

namespace {

Trajectory parse_tum(const std::filesystem::path& file) {
  const std::string text = text_of(file, "a trajectory in TUM's format");
  io::TextScanner scan(text, file.string());
  Trajectory out;
  while (scan.next_line()) {
    out.seconds.push_back(scan.number("the time"));
    for (const char* what : {"tx", "ty", "tz"}) out.poses.push_back(scan.number(what));
    const double x = scan.number("qx"), y = scan.number("qy"), z = scan.number("qz"), w = scan.number("qw");
    out.poses.insert(out.poses.end(), {w, x, y, z});
    unit(&out.poses[out.poses.size() - 4], scan);
    scan.end_line("the end of the line after the quaternion");
  }
  if (out.seconds.empty()) throw InputError("no poses", file.string(), "a trajectory in TUM's format");
  return out;
}

}  // namespace

Trajectory read_tum(const std::filesystem::path& file) {
  return io::within_memory(file.string(), [&] { return parse_tum(file); });
}

void write_tum(const std::filesystem::path& file, const Trajectory& trajectory) {
  if (trajectory.poses.size() != 7 * trajectory.seconds.size())
    throw InputError(
        fmt::format("{} numbers for {} times", trajectory.poses.size(), trajectory.seconds.size()),
        "solve write_tum", "7 for each");
  std::string text = "# seconds tx ty tz qx qy qz qw\n";
  for (size_t k = 0; k < trajectory.seconds.size(); ++k) {
    const double* p = &trajectory.poses[7 * k];
    fmt::format_to(std::back_inserter(text), "{} {} {} {} {} {} {} {}\n", trajectory.seconds[k], p[0], p[1],
                   p[2], p[4], p[5], p[6], p[3]);
  }
  write_file(file, text);
}

ColmapModel read_colmap(const std::filesystem::path& folder) {
  return io::within_memory(folder.string(), [&] {
    ColmapModel model;
    const Places cameras = read_cameras(folder / "cameras.txt", model);
    const Places points = read_points(folder / "points3D.txt", model);
    read_images(folder / "images.txt", cameras, points, model);
    if (model.images.empty()) throw InputError("no images", (folder / "images.txt").string(), kColmap);
    return model;
  });
}

void write_colmap(const std::filesystem::path& folder, const ColmapModel& model) {
  std::string cameras = "# CAMERA_ID MODEL WIDTH HEIGHT PARAMS[]\n", images, points;
  for (const ColmapModel::Camera& c : model.cameras)
    fmt::format_to(std::back_inserter(cameras), "{} {} {} {} {}\n", c.id, c.model, c.width, c.height,
                   fmt::join(c.parameters, " "));
  images = "# IMAGE_ID QW QX QY QZ TX TY TZ CAMERA_ID NAME, then X Y POINT3D_ID[]\n";
  std::vector<std::string> tracks(model.points.size());
  for (const ColmapModel::Image& i : model.images) {
    const auto& p = i.pose;
    fmt::format_to(std::back_inserter(images), "{} {} {} {} {} {} {} {} {} {}\n", i.id, p[3], p[4], p[5],
                   p[6], p[0], p[1], p[2], model.cameras.at(size_t(i.camera)).id, i.name);
    for (size_t k = 0; k < i.points.size(); ++k) {
      const int32_t point = i.points[k];
      fmt::format_to(std::back_inserter(images), "{}{} {} {}", k ? " " : "", i.pixels[2 * k],
                     i.pixels[2 * k + 1], point < 0 ? -1 : model.points.at(size_t(point)).id);
      if (point >= 0) tracks[size_t(point)] += fmt::format(" {} {}", i.id, k);
    }
    images += '\n';
  }
  points = "# POINT3D_ID X Y Z R G B ERROR TRACK[] as (IMAGE_ID POINT2D_IDX)\n";
  for (size_t k = 0; k < model.points.size(); ++k) {
    const ColmapModel::Point& p = model.points[k];
    fmt::format_to(std::back_inserter(points), "{} {} {} {} {} {} {} {}{}\n", p.id, p.position[0],
                   p.position[1], p.position[2], p.color[0], p.color[1], p.color[2], p.error, tracks[k]);
  }
  write_file(folder / "cameras.txt", cameras);
  write_file(folder / "images.txt", images);
  write_file(folder / "points3D.txt", points);
}

Reconstruction build(const ColmapModel& model, const RobustLoss& loss) {
  Reconstruction out;
  Problem& problem = out.problem;
  std::vector<double> poses, points;
  for (const ColmapModel::Image& i : model.images) poses.insert(poses.end(), i.pose.begin(), i.pose.end());
  for (const ColmapModel::Point& p : model.points)
    points.insert(points.end(), p.position.begin(), p.position.end());
  out.poses = problem.add_blocks("poses", se3(), poses);
  out.points = problem.add_blocks("points", euclidean(3), points);
  std::vector<uint8_t> seen(model.points.size(), 0), used(model.images.size(), 0);
  for (size_t c = 0; c < model.cameras.size(); ++c) {
    const CameraLayout& layout = layout_of(model.cameras[c].model, "solve build");
    std::vector<double> numbers(size_t(intrinsics(layout.model)), 0);
    for (size_t k = 0; k < layout.places.size(); ++k)
      numbers[size_t(layout.places[k])] = model.cameras[c].parameters.at(k);
    const BlockSet set = problem.add_blocks(fmt::format("camera {}", model.cameras[c].id),
                                            euclidean(int(numbers.size())), numbers);
    out.cameras.push_back(set);
    if (!layout.held.empty()) problem.fix_coordinates(set, 0, layout.held);
    std::vector<int32_t> indices;
    std::vector<double> data;
    for (size_t i = 0; i < model.images.size(); ++i) {
      const ColmapModel::Image& image = model.images[i];
      for (size_t k = 0; k < image.points.size() && image.camera == int32_t(c); ++k) {
        if (image.points[k] < 0) continue;
        indices.insert(indices.end(), {int32_t(i), 0, image.points[k]});
        data.insert(data.end(), {image.pixels[2 * k], image.pixels[2 * k + 1], 1.0});
        used[i] = seen[size_t(image.points[k])] = 1;
      }
    }
    if (indices.empty())
      problem.fix(set, 0);
    else
      problem.add_terms(projection(layout.model, loss), {out.poses, set, out.points}, indices, data);
  }
  for (size_t i = 0; i < used.size(); ++i)
    if (!used[i] || i == 0) problem.fix(out.poses, int64_t(i));
  for (size_t p = 0; p < seen.size(); ++p)
    if (!seen[p]) problem.fix(out.points, int64_t(p));
  return out;
}

ColmapModel with_values(ColmapModel model, const Reconstruction& r) {
  const std::span<const double> poses = r.problem.values(r.poses), points = r.problem.values(r.points);
  for (size_t i = 0; i < model.images.size(); ++i)
    std::copy_n(poses.begin() + int64_t(7 * i), 7, model.images[i].pose.begin());
  for (size_t p = 0; p < model.points.size(); ++p)
    std::copy_n(points.begin() + int64_t(3 * p), 3, model.points[p].position.begin());
  for (size_t c = 0; c < model.cameras.size(); ++c) {
    const CameraLayout& layout = layout_of(model.cameras[c].model, "solve with_values");
    const std::span<const double> numbers = r.problem.values(r.cameras[c]);
    for (size_t k = 0; k < layout.places.size(); ++k)
      model.cameras[c].parameters[k] = numbers[size_t(layout.places[k])];
  }
  return model;
}

}  // namespace lockstep::solve
