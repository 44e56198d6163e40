#include "solve/mesh/selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>

#include "core/platform/from_chars.hpp"
#include "io/text/file.hpp"
#include "lockstep/error.hpp"
#include "solve/mesh/geometry.hpp"

namespace lockstep::solve::mesh {
namespace {

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
  return first == std::string_view::npos ? std::string_view() : text.substr(first, last - first + 1);
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t from = 0;;) {
    const size_t to = text.find(separator, from);
    parts.push_back(trimmed(text.substr(from, to - from)));
    if (to == std::string_view::npos) return parts;
    from = to + 1;
  }
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = platform::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>)
    if (!std::isfinite(value)) return std::nullopt;
  return value;
}

struct Selector {
  const TriangleMesh& mesh;
  const Connectivity& connectivity;
  std::string_view option;

  [[noreturn]] void refuse(std::string_view what, std::string_view expected) const {
    throw InputError(what, option, expected);
  }

  int32_t vertex(int64_t v) const {
    if (v < 0 || v >= mesh.vertex_count())
      refuse(fmt::format("vertex {}", v), fmt::format("0 to {}", mesh.vertex_count() - 1));
    return int32_t(v);
  }

  std::vector<int32_t> comparison(std::string_view part) const {
    const size_t sign = part.find_first_of("<>");
    const size_t axis = std::string_view("xyz").find(part[0]);
    const bool with_equal = sign + 1 < part.size() && part[sign + 1] == '=';
    std::string_view limit =
        sign == 1 ? trimmed(part.substr(sign + 1 + size_t(with_equal))) : std::string_view();
    const bool share = limit.ends_with('%');
    if (share) limit.remove_suffix(1);
    const std::optional<double> value = number<double>(limit);
    if (axis == std::string_view::npos || !value)
      refuse(fmt::format("'{}'", part), "such as z<0.1 or x>=90%");
    double bound = *value;
    if (share) {
      const Box box = bounding_box(mesh);
      bound = box.low[axis] + bound / 100 * (box.high[axis] - box.low[axis]);
    }
    std::vector<int32_t> chosen;
    for (int64_t v = 0; v < mesh.vertex_count(); ++v) {
      const double x = mesh.vertices[size_t(3 * v) + axis];
      const bool below = part[sign] == '<';
      if ((below && x < bound) || (!below && x > bound) || (with_equal && x == bound))
        chosen.push_back(int32_t(v));
    }
    return chosen;
  }

  std::vector<int32_t> boundary(std::string_view part) const {
    std::vector<int32_t> chosen;
    if (part == "boundary") {
      for (const auto& loop : connectivity.boundary_loops)
        chosen.insert(chosen.end(), loop.begin(), loop.end());
      std::sort(chosen.begin(), chosen.end());
      return chosen;
    }
    const std::optional<int64_t> loop = number<int64_t>(part.substr(std::string_view("boundary:").size()));
    const auto loops = int64_t(connectivity.boundary_loops.size());
    if (!loop || *loop < 0 || *loop >= loops)
      refuse(fmt::format("'{}'", part), loops > 0 ? fmt::format("loops 0 to {}", loops - 1) : "an open mesh");
    chosen = connectivity.boundary_loops[size_t(*loop)];
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  }

  std::vector<int32_t> primitive(std::string_view part) const {
    if (part == "boundary" || part.starts_with("boundary:")) return boundary(part);
    std::vector<int32_t> chosen;
    if (part == "all") {
      chosen.resize(size_t(mesh.vertex_count()));
      std::iota(chosen.begin(), chosen.end(), 0);
      return chosen;
    }
    if (part.find_first_of("<>") != std::string_view::npos) return comparison(part);
    const size_t dash = part.find('-');
    const std::optional<int64_t> first = number<int64_t>(part.substr(0, dash));
    const std::optional<int64_t> last =
        dash == std::string_view::npos ? first : number<int64_t>(part.substr(dash + 1));
    if (!first || !last || *last < *first) {
      refuse(fmt::format("'{}'", part),
             "a vertex, a range such as 5-9, boundary, all, or a comparison such as z<0.1 or x>=90%");
    }
    for (int64_t v = vertex(*first); v <= vertex(*last); ++v) chosen.push_back(int32_t(v));
    return chosen;
  }

  std::vector<int32_t> operator()(std::string_view text) const {
    std::vector<int32_t> all;
    for (const std::string_view part : parts_of(text, ',')) {
      std::vector<int32_t> chosen;
      bool first = true;
      for (const std::string_view condition : parts_of(part, '&')) {
        std::vector<int32_t> more = primitive(condition);
        if (!first) {
          std::vector<int32_t> both;
          std::set_intersection(chosen.begin(), chosen.end(), more.begin(), more.end(),
                                std::back_inserter(both));
          more = std::move(both);
        }
        chosen = std::move(more);
        first = false;
      }
      if (chosen.empty()) refuse(fmt::format("'{}' chooses no vertex", part), "at least one");
      all.insert(all.end(), chosen.begin(), chosen.end());
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }
};

std::vector<double> numbers_of(std::string_view text, size_t count, std::string_view handle,
                               std::string_view option) {
  std::vector<double> numbers;
  for (const std::string_view part : parts_of(text, ',')) {
    if (const auto value = number<double>(part)) numbers.push_back(*value);
  }
  if (numbers.size() != count || parts_of(text, ',').size() != count)
    throw InputError(fmt::format("'{}'", handle), option,
                     fmt::format("{} numbers with commas between", count));
  return numbers;
}

// Rodrigues' formula.
Point turned(const Point& v, const Point& axis, double angle) {
  const double c = std::cos(angle), s = std::sin(angle);
  return v * c + cross(axis, v) * s + axis * (dot(axis, v) * (1 - c));
}

}  // namespace

std::vector<int32_t> select_vertices(std::string_view text, const TriangleMesh& mesh,
                                     const Connectivity& connectivity, std::string_view option) {
  return Selector{mesh, connectivity, option}(text);
}

std::vector<Handle> parse_handle(std::string_view text, const TriangleMesh& mesh,
                                 const Connectivity& connectivity, std::string_view option) {
  const Selector select{mesh, connectivity, option};
  std::vector<Handle> handles;
  if (const size_t at = text.find('@'); at != std::string_view::npos) {
    const std::vector<double> n = numbers_of(text.substr(at + 1), 4, text, option);
    Point axis{n[0], n[1], n[2]};
    if (!(length(axis) > 0)) throw InputError(fmt::format("'{}'", text), option, "an axis that is not zero");
    axis = axis * (1 / length(axis));
    const std::vector<int32_t> chosen = select(text.substr(0, at));
    Point middle{0, 0, 0};
    for (const int32_t v : chosen) middle = middle + point(mesh, v) * (1.0 / double(chosen.size()));
    for (const int32_t v : chosen)
      handles.push_back({v, middle + turned(point(mesh, v) - middle, axis, n[3] * std::numbers::pi / 180)});
    return handles;
  }
  if (const size_t plus = text.find("+="); plus != std::string_view::npos) {
    const std::vector<double> n = numbers_of(text.substr(plus + 2), 3, text, option);
    for (const int32_t v : select(text.substr(0, plus)))
      handles.push_back({v, point(mesh, v) + Point{n[0], n[1], n[2]}});
    return handles;
  }
  const size_t equal = text.rfind('=');
  if (equal == std::string_view::npos) {
    throw InputError(fmt::format("'{}'", text), option,
                     "VERTEX=X,Y,Z, SELECTION+=DX,DY,DZ or SELECTION@X,Y,Z,DEGREES");
  }
  const std::vector<double> n = numbers_of(text.substr(equal + 1), 3, text, option);
  const std::vector<int32_t> chosen = select(text.substr(0, equal));
  if (chosen.size() != 1)
    throw InputError(fmt::format("'{}' puts {} vertices in one place", text, chosen.size()), option,
                     "one vertex");
  return {{chosen[0], {n[0], n[1], n[2]}}};
}

std::vector<Handle> read_handles(const std::filesystem::path& path, const TriangleMesh& mesh) {
  std::istringstream lines(io::read_text_file(path, "a file of handles"));
  std::vector<Handle> handles;
  int number_of_line = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number_of_line;
    const std::string_view content = trimmed(line);
    if (content.empty() || content[0] == '#') continue;
    std::istringstream words{std::string(content)};
    std::string word[5];
    int count = 0;
    while (count < 5 && words >> word[count]) ++count;
    const auto v = number<int64_t>(word[0]);
    const auto x = number<double>(word[1]), y = number<double>(word[2]), z = number<double>(word[3]);
    const std::string where = fmt::format("{}:{}", path.string(), number_of_line);
    if (count != 4 || !v || !x || !y || !z)
      throw InputError(fmt::format("'{}'", content), where, "vertex x y z");
    if (*v < 0 || *v >= mesh.vertex_count())
      throw InputError(fmt::format("vertex {}", *v), where, fmt::format("0 to {}", mesh.vertex_count() - 1));
    handles.push_back({int32_t(*v), {*x, *y, *z}});
  }
  return handles;
}

}  // namespace lockstep::solve::mesh
