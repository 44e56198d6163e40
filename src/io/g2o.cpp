#include "io/g2o.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <unordered_map>

#include "core/atomic_file.hpp"
#include "io/file.hpp"
#include "io/text_scanner.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

constexpr const char* kFormat = "a pose graph in g2o's text format";
constexpr const char* kTags = "VERTEX_SE2, VERTEX_SE3:QUAT, EDGE_SE2, EDGE_SE3:QUAT or FIX";

class Parser {
 public:
  Parser(std::string_view text, std::string_view where) : scan_(text, std::string(where)), where_(where) {}

  PoseGraph parse() {
    while (scan_.next_line()) {
      const std::string_view tag = scan_.field();
      if (tag == "VERTEX_SE3:QUAT") {
        vertex(3, tag);
      } else if (tag == "EDGE_SE3:QUAT") {
        edge(3, tag);
      } else if (tag == "VERTEX_SE2") {
        vertex(2, tag);
      } else if (tag == "EDGE_SE2") {
        edge(2, tag);
      } else if (tag == "FIX") {
        fix();
      } else if (tag != "PARAMS_SE3OFFSET") {
        scan_.fail(fmt::format("unknown tag '{}'", shown(tag)), kTags);
      }
    }
    if (graph_.ids.empty()) throw InputError("no vertices", where_, kFormat);
    if (ends_.empty()) throw InputError("no edges", where_, kFormat);
    resolve();
    return std::move(graph_);
  }

 private:
  void expect_dimension(int dimension, std::string_view tag) {
    if (graph_.ids.empty() && ends_.empty()) graph_.dimension = dimension;
    if (graph_.dimension != dimension)
      scan_.fail(fmt::format("{} in a graph of {} dimensions", tag, graph_.dimension),
                 "poses of one dimension only");
  }

  void pose(std::vector<double>& out) {
    out.push_back(scan_.number("x"));
    out.push_back(scan_.number("y"));
    if (graph_.dimension == 2) {
      out.push_back(scan_.number("the angle"));
      return;
    }
    out.push_back(scan_.number("z"));
    const double x = scan_.number("qx"), y = scan_.number("qy"), z = scan_.number("qz"),
                 w = scan_.number("qw");
    const double largest = std::max({std::abs(x), std::abs(y), std::abs(z), std::abs(w)});
    if (largest < 1e-12) scan_.fail("a zero quaternion", "a rotation");
    const double length =
        largest * std::hypot(std::hypot(x / largest, y / largest), std::hypot(z / largest, w / largest));
    for (const double part : {w, x, y, z}) out.push_back(part / length);
  }

  void vertex(int dimension, std::string_view tag) {
    expect_dimension(dimension, tag);
    const int64_t id = scan_.integer("the vertex id", 0);
    if (graph_.ids.size() >= size_t(INT32_MAX)) scan_.fail("too many vertices", "fewer than 2^31");
    const auto [found, fresh] = places_.emplace(id, int32_t(graph_.ids.size()));
    if (!fresh) scan_.fail(fmt::format("vertex {} a second time", id), "each vertex once");
    graph_.ids.push_back(id);
    pose(graph_.poses);
    scan_.end_line("the end of the line after the pose");
  }

  void edge(int dimension, std::string_view tag) {
    expect_dimension(dimension, tag);
    const int64_t from = scan_.integer("the first vertex id", 0),
                  to = scan_.integer("the second vertex id", 0);
    if (from == to)
      scan_.fail(fmt::format("an edge from vertex {} to itself", from), "two different vertices");
    ends_.push_back({from, to, scan_.line()});
    pose(graph_.measurements);
    const int n = graph_.error_size();
    const size_t first = graph_.information.size();
    graph_.information.resize(first + size_t(n * n));
    double* matrix = graph_.information.data() + first;
    for (int r = 0; r < n; ++r)
      for (int c = r; c < n; ++c)
        matrix[r * n + c] = matrix[c * n + r] = scan_.number("an entry of the information matrix");
    scan_.end_line("the end of the line after the information matrix");
    std::array<double, 36> factor;
    if (!whitening_factor(matrix, n, factor.data()))
      scan_.fail(fmt::format("the information matrix of edge {} {}", from, to), "a positive definite matrix");
  }

  void fix() {
    do {
      fixes_.push_back({scan_.integer("the id of the fixed vertex", 0), 0, scan_.line()});
    } while (!scan_.at_line_end());
  }

  // Edges may stand before their vertices.
  int32_t place_of(int64_t id, int64_t line) const {
    const auto found = places_.find(id);
    if (found == places_.end())
      throw InputError(fmt::format("vertex {} is not in the file", id), fmt::format("{}:{}", where_, line),
                       "the id of a VERTEX line");
    return found->second;
  }
  void resolve() {
    graph_.edges.reserve(2 * ends_.size());
    for (const Ends& e : ends_) {
      graph_.edges.push_back(place_of(e.from, e.line));
      graph_.edges.push_back(place_of(e.to, e.line));
    }
    for (const Ends& e : fixes_) graph_.fixed.push_back(place_of(e.from, e.line));
    std::sort(graph_.fixed.begin(), graph_.fixed.end());
    graph_.fixed.erase(std::unique(graph_.fixed.begin(), graph_.fixed.end()), graph_.fixed.end());
  }

  struct Ends {
    int64_t from, to, line;
  };
  TextScanner scan_;
  const std::string where_;
  PoseGraph graph_;
  std::vector<Ends> ends_, fixes_;
  std::unordered_map<int64_t, int32_t> places_;
};

void append_pose(std::string& text, const PoseGraph& graph, const double* p) {
  const auto out = std::back_inserter(text);
  if (graph.dimension == 2) {
    fmt::format_to(out, " {} {} {}", p[0], p[1], p[2]);
  } else {
    fmt::format_to(out, " {} {} {} {} {} {} {}", p[0], p[1], p[2], p[4], p[5], p[6], p[3]);
  }
}

}  // namespace

bool whitening_factor(const double* matrix, int n, double* factor) {
  std::fill_n(factor, n * n, 0.0);
  for (int r = 0; r < n; ++r) {
    double pivot = matrix[r * n + r];
    for (int k = 0; k < r; ++k) pivot -= factor[k * n + r] * factor[k * n + r];
    // A pivot that is lost in the rounding of its diagonal entry is no evidence of definiteness.
    if (!(pivot > 1e-14 * matrix[r * n + r]) || !std::isfinite(pivot)) return false;
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
  return parse_g2o(read_text_file(path, kFormat), path.string());
}

void write_g2o(const std::filesystem::path& path, const PoseGraph& graph) {
  const std::string_view kind = graph.dimension == 2 ? "SE2" : "SE3:QUAT";
  const size_t pose = size_t(graph.pose_size()), n = size_t(graph.error_size());
  std::string text;
  for (size_t v = 0; v < graph.ids.size(); ++v) {
    fmt::format_to(std::back_inserter(text), "VERTEX_{} {}", kind, graph.ids[v]);
    append_pose(text, graph, graph.poses.data() + v * pose);
    text += '\n';
  }
  for (const int32_t v : graph.fixed)
    fmt::format_to(std::back_inserter(text), "FIX {}\n", graph.ids[size_t(v)]);
  for (size_t e = 0; e < size_t(graph.edge_count()); ++e) {
    fmt::format_to(std::back_inserter(text), "EDGE_{} {} {}", kind, graph.ids[size_t(graph.edges[2 * e])],
                   graph.ids[size_t(graph.edges[2 * e + 1])]);
    append_pose(text, graph, graph.measurements.data() + e * pose);
    for (size_t r = 0; r < n; ++r)
      for (size_t c = r; c < n; ++c)
        fmt::format_to(std::back_inserter(text), " {}", graph.information[(e * n + r) * n + c]);
    text += '\n';
  }
  write_file(path, text);
}

}  // namespace lockstep::io
