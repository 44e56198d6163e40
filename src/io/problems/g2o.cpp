#include "io/problems/g2o.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <unordered_map>

#include "core/files/atomic_file.hpp"
#include "io/text/parse_file.hpp"
#include "io/text/seeded_hash.hpp"
#include "io/text/text_scanner.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr const char* kGraphFormat = "a pose graph in g2o's text format";
constexpr const char* kTags =
    "VERTEX_SE2, VERTEX_XY, VERTEX_SE3:QUAT, VERTEX_TRACKXYZ, EDGE_SE2, EDGE_SE2_XY, EDGE_BEARING_SE2_XY, "
    "EDGE_POINTXY, EDGE_PRIOR_SE2, EDGE_SE3:QUAT, EDGE_SE3_TRACKXYZ, EDGE_SE3_PRIOR, PARAMS_SE3OFFSET or FIX";

class Parser {
 public:
  Parser(std::string_view text, std::string_view where)
      : scan_(text, std::string(where), {.trailing_comments = true}), where_(where) {}

  PoseGraph parse() {
    while (scan_.next_line()) {
      const std::string_view tag = scan_.field();
      if (tag == "VERTEX_SE3:QUAT" || tag == "VERTEX_SE2") {
        expect_dimension(tag == "VERTEX_SE2" ? 2 : 3, tag);
        vertex(false);
      } else if (tag == "VERTEX_TRACKXYZ" || tag == "VERTEX_XY") {
        expect_dimension(tag == "VERTEX_XY" ? 2 : 3, tag);
        vertex(true);
      } else if (tag == "EDGE_SE3:QUAT" || tag == "EDGE_SE2") {
        expect_dimension(tag == "EDGE_SE2" ? 2 : 3, tag);
        edge();
      } else if (tag == "EDGE_SE3_TRACKXYZ" || tag == "EDGE_SE2_XY") {
        expect_dimension(tag == "EDGE_SE2_XY" ? 2 : 3, tag);
        sight();
      } else if (tag == "EDGE_SE3_PRIOR" || tag == "EDGE_PRIOR_SE2") {
        expect_dimension(tag == "EDGE_PRIOR_SE2" ? 2 : 3, tag);
        prior();
      } else if (tag == "EDGE_BEARING_SE2_XY") {
        expect_dimension(2, tag);
        bearing();
      } else if (tag == "EDGE_POINTXY") {
        expect_dimension(2, tag);
        link();
      } else if (tag == "PARAMS_SE3OFFSET") {
        expect_dimension(3, tag);
        sensor();
      } else if (tag == "FIX") {
        fix();
      } else {
        scan_.fail(fmt::format("unknown tag '{}'", shown(tag)), kTags);
      }
    }
    if (places_.empty()) place_ends();
    if (places_.empty()) throw InputError("no vertices", where_, kGraphFormat);
    if (edges_.empty() && sights_.empty() && links_.empty() && bearings_.empty() && priors_.empty())
      throw InputError("no edges", where_, kGraphFormat);
    resolve();
    graph_.claim.settle(2 * bytes_);
    return std::move(graph_);
  }

 private:
  static constexpr size_t kBytesOfPlace = 64;  // of an id in a table
  struct Place {
    bool landmark;
    int32_t at;
  };
  struct Ends {
    int64_t from, to, line, sensor = 0;
  };

  void expect_dimension(int dimension, std::string_view tag) {
    if (!dimension_known_) graph_.dimension = dimension;
    dimension_known_ = true;
    if (graph_.dimension != dimension)
      scan_.fail(fmt::format("{} in a graph of {} dimensions", tag, graph_.dimension),
                 "poses of one dimension only");
  }

  void point(std::vector<double>& out) {
    out.push_back(scan_.number("x"));
    out.push_back(scan_.number("y"));
    if (graph_.dimension == 3) out.push_back(scan_.number("z"));
  }
  void pose(std::vector<double>& out) {
    point(out);
    if (graph_.dimension == 2) {
      out.push_back(scan_.number("the angle"));
      return;
    }
    const double x = scan_.number("qx"), y = scan_.number("qy"), z = scan_.number("qz"),
                 w = scan_.number("qw");
    const double largest = std::max({std::abs(x), std::abs(y), std::abs(z), std::abs(w)});
    if (largest < 1e-12) scan_.fail("a zero quaternion", "a rotation");
    const double length =
        largest * std::hypot(std::hypot(x / largest, y / largest), std::hypot(z / largest, w / largest));
    for (const double part : {w, x, y, z}) out.push_back(part / length);
  }

  /// Asks the budget for what a line adds.
  void hold(size_t bytes) {
    bytes_ += bytes;
    graph_.claim.reach(bytes_, "its graph", where_);
  }

  void vertex(bool landmark) {
    hold(kBytesOfPlace + sizeof(int64_t) + 7 * sizeof(double));
    const int64_t id = scan_.integer("the vertex id", 0);
    std::vector<int64_t>& ids = landmark ? graph_.landmarks.ids : graph_.ids;
    if (ids.size() >= size_t(INT32_MAX)) scan_.fail("too many vertices", "fewer than 2^31");
    const auto [found, fresh] = places_.emplace(id, Place{landmark, int32_t(ids.size())});
    if (!fresh) scan_.fail(fmt::format("vertex {} is repeated", id), "each vertex once");
    ids.push_back(id);
    if (landmark)
      point(graph_.landmarks.points);
    else
      pose(graph_.poses);
    scan_.end_line(landmark ? "the end of the line after the point" : "the end of the line after the pose");
  }

  Ends ends() {
    hold(sizeof(Ends) + sizeof(int64_t) + 2 * (kBytesOfPlace + sizeof(int32_t)));
    const int64_t from = scan_.integer("the first vertex id", 0),
                  to = scan_.integer("the second vertex id", 0);
    if (from == to)
      scan_.fail(fmt::format("an edge from vertex {} to itself", from), "two different vertices");
    return {from, to, scan_.line()};
  }
  /// The upper triangle of an (n, n) matrix, to the end of the line.
  void information(const Ends& edge, int n, std::vector<double>& out) {
    hold((size_t(n * n) + 7) * sizeof(double));
    const size_t first = out.size();
    out.resize(first + size_t(n * n));
    double* matrix = out.data() + first;
    for (int r = 0; r < n; ++r)
      for (int c = r; c < n; ++c)
        matrix[r * n + c] = matrix[c * n + r] = scan_.number("an entry of the information matrix");
    scan_.end_line("the end of the line after the information matrix");
    std::array<double, 36> factor;
    if (!whitening_factor(matrix, n, factor.data()))
      scan_.fail(fmt::format("the information matrix of edge {} {}", edge.from, edge.to),
                 "a positive semidefinite matrix");
  }
  void prior() {
    Ends edge{scan_.integer("the vertex id", 0), 0, scan_.line()};
    edge.to = edge.from;
    if (graph_.dimension == 3) edge.sensor = scan_.integer("the id of the sensor", 0);
    hold(sizeof(Ends) + sizeof(int64_t));
    priors_.push_back(edge);
    pose(graph_.priors.measurements);
    information(edge, graph_.error_size(), graph_.priors.information);
  }
  void bearing() {
    bearings_.push_back(ends());
    graph_.landmarks.angles.push_back(scan_.number("the angle"));
    information(bearings_.back(), 1, graph_.landmarks.angle_information);
  }
  void edge() {
    edges_.push_back(ends());
    pose(graph_.measurements);
    information(edges_.back(), graph_.error_size(), graph_.information);
  }
  void sight() {
    Ends edge = ends();
    if (graph_.dimension == 3) edge.sensor = scan_.integer("the id of the sensor", 0);
    sights_.push_back(edge);
    point(graph_.landmarks.seen);
    information(edge, graph_.dimension, graph_.landmarks.information);
  }
  void link() {
    links_.push_back(ends());
    point(graph_.landmarks.differences);
    information(links_.back(), 2, graph_.landmarks.link_information);
  }
  void sensor() {
    hold(kBytesOfPlace + 7 * sizeof(double));
    const int64_t id = scan_.integer("the id of the sensor", 0);
    if (!sensors_.emplace(id, int32_t(sensors_.size())).second)
      scan_.fail(fmt::format("sensor {} is repeated", id), "each sensor once");
    graph_.landmarks.sensor_ids.push_back(id);
    pose(graph_.landmarks.sensor_poses);
    scan_.end_line("the end of the line after the sensor's pose");
  }

  void fix() {
    do {
      hold(sizeof(Ends) + sizeof(int32_t));
      fixes_.push_back({scan_.integer("the id of the fixed vertex", 0), 0, scan_.line()});
    } while (!scan_.at_line_end());
  }

  /// Without VERTEX lines the vertices are the edges' ends, by ascending number.
  void place_ends() {
    graph_.has_poses = false;
    for (const std::vector<Ends>* edges : {&priors_, &bearings_})
      if (!edges->empty())
        throw InputError("a prior or a bearing without poses",
                         fmt::format("{}:{}", where_, edges->front().line), "VERTEX lines");
    std::map<int64_t, bool> landmark;
    for (const auto& [edges, seen] : {std::pair(&sights_, false), {&edges_, false}, {&links_, true}})
      for (const Ends& e : *edges)
        landmark.emplace(e.from, seen), landmark.emplace(e.to, seen || edges == &sights_);
    if (fixes_.size() > 1)
      throw InputError("two vertices of FIX lines without poses",
                       fmt::format("{}:{}", where_, fixes_[1].line), "one, or VERTEX lines");
    for (const auto& [id, is_landmark] : landmark) {
      std::vector<int64_t>& ids = is_landmark ? graph_.landmarks.ids : graph_.ids;
      places_.emplace(id, Place{is_landmark, int32_t(ids.size())});
      ids.push_back(id);
    }
    graph_.landmarks.points.assign(graph_.landmarks.ids.size() * size_t(graph_.dimension), 0);
    graph_.poses.assign(graph_.ids.size() * size_t(graph_.pose_size()), 0);
    if (graph_.dimension == 3)
      for (size_t v = 0; v < graph_.ids.size(); ++v) graph_.poses[7 * v + 3] = 1;
  }

  // Edges may precede their vertices and sensors.
  Place place_of(int64_t id, int64_t line) const {
    const auto found = places_.find(id);
    if (found == places_.end())
      throw InputError(fmt::format("vertex {} is not in the file", id), fmt::format("{}:{}", where_, line),
                       "the id of a VERTEX line");
    return found->second;
  }
  int32_t place_of(int64_t id, int64_t line, bool landmark) const {
    const Place place = place_of(id, line);
    if (place.landmark != landmark)
      throw InputError(fmt::format("vertex {} is a {}", id, place.landmark ? "landmark" : "pose"),
                       fmt::format("{}:{}", where_, line), landmark ? "a landmark" : "a pose");
    return place.at;
  }
  int32_t sensor_of(const Ends& e) const {
    const auto sensor = sensors_.find(e.sensor);
    if (sensor == sensors_.end())
      throw InputError(fmt::format("sensor {} is not in the file", e.sensor),
                       fmt::format("{}:{}", where_, e.line), "the id of a PARAMS_SE3OFFSET line");
    return sensor->second;
  }
  void resolve() {
    Landmarks& landmarks = graph_.landmarks;
    GraphLines& lines = graph_.lines;
    for (const auto& [from, to] : {std::pair(&edges_, &lines.edges),
                                   {&sights_, &lines.sights},
                                   {&links_, &lines.links},
                                   {&bearings_, &lines.bearings},
                                   {&priors_, &lines.priors}})
      std::ranges::transform(*from, std::back_inserter(*to), &Ends::line);
    for (const Ends& e : edges_)
      for (const int64_t id : {e.from, e.to}) graph_.edges.push_back(place_of(id, e.line, false));
    for (const Ends& e : links_)
      for (const int64_t id : {e.from, e.to}) landmarks.links.push_back(place_of(id, e.line, true));
    for (const Ends& e : bearings_) {
      landmarks.bearings.push_back(place_of(e.from, e.line, false));
      landmarks.bearings.push_back(place_of(e.to, e.line, true));
    }
    for (const Ends& e : priors_) {
      graph_.priors.poses.push_back(place_of(e.from, e.line, false));
      if (graph_.dimension == 3) graph_.priors.sensors.push_back(sensor_of(e));
    }
    for (const Ends& e : sights_) {
      landmarks.sights.push_back(place_of(e.from, e.line, false));
      landmarks.sights.push_back(place_of(e.to, e.line, true));
      if (graph_.dimension == 2) continue;
      landmarks.sensors.push_back(sensor_of(e));
    }
    for (const Ends& e : fixes_) {
      const Place place = place_of(e.from, e.line);
      (place.landmark ? landmarks.fixed : graph_.fixed).push_back(place.at);
    }
    for (std::vector<int32_t>* fixed : {&graph_.fixed, &landmarks.fixed}) {
      std::sort(fixed->begin(), fixed->end());
      fixed->erase(std::unique(fixed->begin(), fixed->end()), fixed->end());
    }
  }

  TextScanner scan_;
  const std::string where_;
  PoseGraph graph_;
  size_t bytes_ = 0;
  bool dimension_known_ = false;
  std::vector<Ends> edges_, sights_, links_, bearings_, priors_, fixes_;
  std::unordered_map<int64_t, Place, SeededHash> places_;
  std::unordered_map<int64_t, int32_t, SeededHash> sensors_;
};

void append_numbers(std::string& text, const double* numbers, size_t count) {
  for (size_t k = 0; k < count; ++k) fmt::format_to(std::back_inserter(text), " {}", numbers[k]);
}
void append_pose(std::string& text, int dimension, const double* p) {
  append_numbers(text, p, 3);
  if (dimension == 3) fmt::format_to(std::back_inserter(text), " {} {} {} {}", p[4], p[5], p[6], p[3]);
}
/// The upper triangle of an (n, n) matrix, and the end of the line.
void append_information(std::string& text, const double* matrix, size_t n) {
  for (size_t r = 0; r < n; ++r) append_numbers(text, matrix + r * n + r, n - r);
  text += '\n';
}

}  // namespace

bool whitening_factor(const double* matrix, int n, double* factor) {
  std::fill_n(factor, n * n, 0.0);
  for (int r = 0; r < n; ++r) {
    double pivot = matrix[r * n + r];
    for (int k = 0; k < r; ++k) pivot -= factor[k * n + r] * factor[k * n + r];
    // A pivot that is lost in the rounding of its diagonal entry counts as 0: its row must be 0, too.
    if (!std::isfinite(pivot) || !(matrix[r * n + r] >= 0)) return false;
    if (!(pivot > 1e-14 * matrix[r * n + r])) {
      if (pivot < -1e-12 * matrix[r * n + r]) return false;
      for (int c = r + 1; c < n; ++c) {
        double rest = matrix[r * n + c];
        for (int k = 0; k < r; ++k) rest -= factor[k * n + r] * factor[k * n + c];
        if (!(std::abs(rest) <= 1e-12 * std::sqrt(matrix[r * n + r] * std::abs(matrix[c * n + c]))))
          return false;
      }
      continue;
    }
    const double root = std::sqrt(pivot);
    factor[r * n + r] = root;
    for (int c = r + 1; c < n; ++c) {
      double sum = matrix[r * n + c];
      for (int k = 0; k < r; ++k) sum -= factor[k * n + r] * factor[k * n + c];
      factor[r * n + c] = sum / root;
      if (!std::isfinite(factor[r * n + c])) return false;
    }
  }
  return true;
}

PoseGraph parse_g2o(std::string_view text, std::string_view where) { return Parser(text, where).parse(); }
PoseGraph read_g2o(const std::filesystem::path& path) {
  return parse_packed_file(path, kGraphFormat, &parse_g2o);
}

void write_g2o(const std::filesystem::path& path, const PoseGraph& graph) {
  const bool flat = graph.dimension == 2;
  const Landmarks& l = graph.landmarks;
  const size_t d = size_t(graph.dimension), pose = size_t(graph.pose_size()), n = size_t(graph.error_size());
  std::string text;
  const auto append = [&text]<class... T>(fmt::format_string<T...> form, T&&... parts) {
    fmt::format_to(std::back_inserter(text), form, std::forward<T>(parts)...);
  };
  for (size_t k = 0; k < l.sensor_ids.size(); ++k) {
    append("PARAMS_SE3OFFSET {}", l.sensor_ids[k]);
    append_pose(text, 3, &l.sensor_poses[7 * k]);
    text += '\n';
  }
  for (size_t v = 0; v < graph.ids.size(); ++v) {
    append("VERTEX_{} {}", flat ? "SE2" : "SE3:QUAT", graph.ids[v]);
    append_pose(text, graph.dimension, &graph.poses[v * pose]);
    text += '\n';
  }
  for (size_t v = 0; v < l.ids.size(); ++v) {
    append("VERTEX_{} {}", flat ? "XY" : "TRACKXYZ", l.ids[v]);
    append_numbers(text, &l.points[v * d], d);
    text += '\n';
  }
  for (const int32_t v : graph.fixed) append("FIX {}\n", graph.ids[size_t(v)]);
  for (const int32_t v : l.fixed) append("FIX {}\n", l.ids[size_t(v)]);
  for (size_t e = 0; e < size_t(graph.edge_count()); ++e) {
    append("EDGE_{} {} {}", flat ? "SE2" : "SE3:QUAT", graph.ids[size_t(graph.edges[2 * e])],
           graph.ids[size_t(graph.edges[2 * e + 1])]);
    append_pose(text, graph.dimension, &graph.measurements[e * pose]);
    append_information(text, &graph.information[e * n * n], n);
  }
  for (size_t e = 0; e < size_t(graph.sight_count()); ++e) {
    append("EDGE_{} {} {}", flat ? "SE2_XY" : "SE3_TRACKXYZ", graph.ids[size_t(l.sights[2 * e])],
           l.ids[size_t(l.sights[2 * e + 1])]);
    if (!flat) append(" {}", l.sensor_ids[size_t(l.sensors[e])]);
    append_numbers(text, &l.seen[e * d], d);
    append_information(text, &l.information[e * d * d], d);
  }
  for (size_t e = 0; e < size_t(graph.link_count()); ++e) {
    append("EDGE_POINTXY {} {}", l.ids[size_t(l.links[2 * e])], l.ids[size_t(l.links[2 * e + 1])]);
    append_numbers(text, &l.differences[2 * e], 2);
    append_information(text, &l.link_information[4 * e], 2);
  }
  for (size_t e = 0; e < size_t(graph.bearing_count()); ++e) {
    append("EDGE_BEARING_SE2_XY {} {} {}", graph.ids[size_t(l.bearings[2 * e])],
           l.ids[size_t(l.bearings[2 * e + 1])], l.angles[e]);
    append_information(text, &l.angle_information[e], 1);
  }
  for (size_t e = 0; e < size_t(graph.prior_count()); ++e) {
    const PosePriors& p = graph.priors;
    append("{} {}", flat ? "EDGE_PRIOR_SE2" : "EDGE_SE3_PRIOR", graph.ids[size_t(p.poses[e])]);
    if (!flat) append(" {}", l.sensor_ids[size_t(p.sensors[e])]);
    append_pose(text, graph.dimension, &p.measurements[e * pose]);
    append_information(text, &p.information[e * n * n], n);
  }
  write_file(path, text);
}

}  // namespace lockstep::io
