// Sketches as TOML.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "io/text/parse_file.hpp"
#include "io/text/toml.hpp"
#include "lockstep/error.hpp"
#include "solve/sketch/sketch.hpp"

namespace lockstep::solve::sketch {
namespace {

using io::TomlArray;
using io::TomlTable;
using io::TomlValue;

constexpr std::array<KindInfo, size_t(ConstraintKind::count_)> kKinds = {{
    {"length", "l|pp", "a line or two points", true},
    {"horizontal", "l|pp", "a line or two points", false},
    {"vertical", "l|pp", "a line or two points", false},
    {"coincident", "pp", "two points", false},
    {"midpoint", "pl|ppp", "a point and a line, or three points with the middle first", false},
    {"collinear", "ll", "two lines", false},
    {"parallel", "ll", "two lines", false},
    {"perpendicular", "ll", "two lines", false},
    {"angle", "ll", "two lines", true},
    {"point_on_line", "pl", "a point and a line", false},
    {"distance", "pl", "a point and a line", true},
    {"point_on_circle", "pc", "a point and a circle", false},
    {"tangent", "lc", "a line and a circle", false},
    {"radial", "lc|ppc", "a line or two points, and a circle", false},
    {"equal_length", "ll+", "two or more lines", false},
    {"equal_radius", "cc+", "two or more circles", false},
    {"circles_tangent", "cc", "two circles", false},
    {"concentric", "cc", "two circles", false},
    {"symmetry", "ppl", "two points and a line", false},
    {"radius", "c", "a circle", true},
}};

bool matches(std::string_view alternatives, std::string_view kinds) {
  for (size_t from = 0; from <= alternatives.size();) {
    const size_t to = std::min(alternatives.find('|', from), alternatives.size());
    std::string_view one = alternatives.substr(from, to - from);
    const bool more = one.ends_with('+');
    if (more) one.remove_suffix(1);
    if (kinds == one) return true;
    if (more && kinds.size() > one.size() && kinds.starts_with(one) &&
        kinds.find_first_not_of(one.back(), one.size()) == std::string_view::npos)
      return true;
    from = to + 1;
  }
  return false;
}

class Parser {
 public:
  explicit Parser(std::string_view where) : where_(where) {}

  Sketch operator()(std::string_view text) {
    const TomlTable root = io::parse_toml(text, where_);
    allow(root, {"name", "points", "lines", "circles", "arcs", "constraints"});
    if (const TomlValue* name = find(root, "name")) sketch_.name = name->text(where_);
    each(root, "points", [&](const std::string& name, const TomlValue& v) { add_point(name, v); });
    each(root, "lines", [&](const std::string& name, const TomlValue& v) { add_line(name, v); });
    each(root, "circles", [&](const std::string& name, const TomlValue& v) { add_circle(name, v); });
    each(root, "arcs", [&](const std::string& name, const TomlValue& v) { add_arc(name, v); });
    if (sketch_.points.empty()) refuse("no points", 1, "a table [points]");
    if (const TomlValue* constraints = find(root, "constraints")) {
      for (const TomlValue& value : constraints->array(where_)) add_constraint(value);
    }
    return std::move(sketch_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what, int line, std::string_view expected) const {
    throw InputError(what, fmt::format("{}:{}", where_, line), expected);
  }

  void allow(const TomlTable& table, std::initializer_list<std::string_view> keys) const {
    for (const auto& [key, value] : table) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        refuse(fmt::format("unknown key '{}'", key), value.line(),
               fmt::format("one of {}", fmt::join(keys, ", ")));
    }
  }

  template <class F>
  void each(const TomlTable& root, std::string_view key, F add) {
    const TomlValue* table = find(root, key);
    if (!table) return;
    for (const auto& [name, value] : table->table(where_)) {
      if (name.empty()) refuse("an empty name", value.line(), "a name");
      add(name, value);
    }
  }

  double finite(const TomlValue& value) const {
    const double number = value.number(where_);
    if (!std::isfinite(number)) refuse(fmt::format("the number {}", number), value.line(), "a finite one");
    return number;
  }

  void declare(const std::string& name, char kind, size_t index, int line) {
    if (!entities_.try_emplace(name, EntityRef{kind, int32_t(index)}).second)
      refuse(fmt::format("'{}' is repeated", name), line, "one name for each point, line, circle and arc");
  }

  EntityRef entity(const TomlValue& value) const {
    const std::string& name = value.text(where_);
    const auto it = entities_.find(name);
    if (it == entities_.end())
      refuse(fmt::format("unknown entity '{}'", name), value.line(),
             "a point, line, circle or arc of the sketch");
    return it->second;
  }

  int32_t point(const TomlValue& value) const {
    const EntityRef ref = entity(value);
    if (ref.kind != 'p')
      refuse(fmt::format("'{}' is not a point", value.text(where_)), value.line(), "a point");
    return ref.index;
  }

  const TomlValue& member(const TomlTable& table, std::string_view key, const std::string& of,
                          int line) const {
    const TomlValue* value = find(table, key);
    if (!value) refuse(fmt::format("'{}' has no {}", of, key), line, fmt::format("{} = …", key));
    return *value;
  }

  void add_point(const std::string& name, const TomlValue& value) {
    SketchPoint p;
    p.name = name;
    const TomlValue* at = &value;
    if (const TomlTable* table = value.get<TomlTable>()) {
      allow(*table, {"at", "pinned"});
      at = &member(*table, "at", name, value.line());
      if (const TomlValue* pinned = find(*table, "pinned")) p.pinned = pinned->boolean(where_);
    }
    const TomlArray& coordinates = at->array(where_);
    if (coordinates.size() != 2)
      refuse(fmt::format("{} coordinates of '{}'", coordinates.size(), name), at->line(), "[x, y]");
    p.x = finite(coordinates[0]);
    p.y = finite(coordinates[1]);
    declare(name, 'p', sketch_.points.size(), value.line());
    sketch_.points.push_back(std::move(p));
  }

  void add_line(const std::string& name, const TomlValue& value) {
    const TomlArray& ends = value.array(where_);
    if (ends.size() != 2)
      refuse(fmt::format("{} ends of '{}'", ends.size(), name), value.line(), "two points");
    SketchLine line{name, point(ends[0]), point(ends[1])};
    if (line.a == line.b)
      refuse(fmt::format("both ends of '{}' are one point", name), value.line(), "two different points");
    declare(name, 'l', sketch_.lines.size(), value.line());
    sketch_.lines.push_back(std::move(line));
  }

  void add_circle(const std::string& name, const TomlValue& value) {
    const TomlTable& table = value.table(where_);
    allow(table, {"center", "radius"});
    SketchCircle circle;
    circle.name = name;
    circle.center = point(member(table, "center", name, value.line()));
    const TomlValue& radius = member(table, "radius", name, value.line());
    circle.radius = finite(radius);
    if (!(circle.radius > 0))
      refuse(fmt::format("radius {} of '{}'", circle.radius, name), radius.line(), "above 0");
    declare(name, 'c', sketch_.circles.size(), value.line());
    sketch_.circles.push_back(std::move(circle));
  }

  void add_arc(const std::string& name, const TomlValue& value) {
    const TomlTable& table = value.table(where_);
    allow(table, {"center", "start", "end"});
    SketchCircle arc;
    arc.name = name;
    arc.center = point(member(table, "center", name, value.line()));
    arc.start = point(member(table, "start", name, value.line()));
    arc.end = point(member(table, "end", name, value.line()));
    if (arc.start == arc.end || arc.start == arc.center || arc.end == arc.center)
      refuse(fmt::format("'{}' names a point twice", name), value.line(), "three different points");
    const SketchPoint &c = sketch_.points[size_t(arc.center)], &s = sketch_.points[size_t(arc.start)],
                      &e = sketch_.points[size_t(arc.end)];
    arc.radius = 0.5 * (std::hypot(s.x - c.x, s.y - c.y) + std::hypot(e.x - c.x, e.y - c.y));
    if (!(arc.radius > 0))
      refuse(fmt::format("'{}' has radius 0", name), value.line(), "ends apart from its centre");
    const auto index = int32_t(sketch_.circles.size());
    declare(name, 'c', size_t(index), value.line());
    for (const auto& [end, what] : {std::pair{arc.start, "start"}, std::pair{arc.end, "end"}}) {
      SketchConstraint on_arc;
      on_arc.name = fmt::format("{} {}", name, what);
      on_arc.kind = ConstraintKind::point_on_circle;
      on_arc.of = {{'p', end}, {'c', index}};
      on_arc.implied = true;
      constraint_names_.insert(on_arc.name);
      sketch_.constraints.push_back(std::move(on_arc));
    }
    sketch_.circles.push_back(std::move(arc));
  }

  void add_constraint(const TomlValue& value) {
    const TomlTable& table = value.table(where_);
    ++constraint_count_;
    const std::string number = fmt::format("constraint {}", constraint_count_);
    const TomlValue& kind_value = member(table, "kind", number, value.line());
    const std::string& kind_text = kind_value.text(where_);
    const auto info =
        std::find_if(kKinds.begin(), kKinds.end(), [&](const KindInfo& k) { return k.name == kind_text; });
    if (info == kKinds.end()) {
      std::vector<std::string_view> names;
      for (const KindInfo& k : kKinds) names.push_back(k.name);
      refuse(fmt::format("unknown kind '{}'", kind_text), kind_value.line(),
             fmt::format("one of {}", fmt::join(names, ", ")));
    }
    SketchConstraint c;
    c.kind = ConstraintKind(info - kKinds.begin());
    const bool tangent_circles = c.kind == ConstraintKind::circles_tangent;
    for (const auto& [key, member_value] : table) {
      if (key == "kind" || key == "of" || key == "name" || (key == "value" && info->value) ||
          (key == "inside" && tangent_circles))
        continue;
      refuse(fmt::format("'{}' of a constraint {}", key, info->name), member_value.line(),
             info->value       ? "kind, of, value and name"
             : tangent_circles ? "kind, of, inside and name"
                               : "kind, of and name");
    }
    const TomlValue* name = find(table, "name");
    c.name = name ? name->text(where_) : fmt::format("{} {}", info->name, constraint_count_);
    if (c.name.empty()) refuse("an empty name", name->line(), "a name");
    if (!constraint_names_.insert(c.name).second)
      refuse(fmt::format("constraint '{}' is repeated", c.name), value.line(), "different names");
    const TomlValue& of = member(table, "of", c.name, value.line());
    std::string kinds;
    std::set<std::pair<char, int32_t>> seen;
    for (const TomlValue& element : of.array(where_)) {
      c.of.push_back(entity(element));
      kinds += c.of.back().kind;
      if (!seen.insert({c.of.back().kind, c.of.back().index}).second)
        refuse(fmt::format("'{}' names '{}' twice", c.name, element.text(where_)), of.line(),
               "different entities");
    }
    if (!matches(info->entities, kinds))
      refuse(fmt::format("the entities of '{}'", c.name), of.line(),
             fmt::format("{} for {}", info->expected, info->name));
    if (info->value) read_value(table, c, value.line());
    if (const TomlValue* inside = find(table, "inside")) c.inside = inside->boolean(where_);
    sketch_.constraints.push_back(std::move(c));
  }

  void read_value(const TomlTable& table, SketchConstraint& c, int line) const {
    const TomlValue& value = member(table, "value", c.name, line);
    c.value = finite(value);
    const bool positive = c.kind == ConstraintKind::length || c.kind == ConstraintKind::radius;
    if ((positive && !(c.value > 0)) || (c.kind == ConstraintKind::distance && c.value < 0))
      refuse(fmt::format("the value {} of '{}'", c.value, c.name), value.line(),
             positive ? "above 0" : "0 or more");
  }

  std::string where_;
  Sketch sketch_;
  std::map<std::string, EntityRef> entities_;
  std::set<std::string> constraint_names_;
  int constraint_count_ = 0;
};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char ch : text) {
    if (ch == '"' || ch == '\\') out += '\\';
    if (static_cast<unsigned char>(ch) < 0x20) {
      out += fmt::format("\\u{:04x}", int(ch));
    } else {
      out += ch;
    }
  }
  return out + "\"";
}

std::string key(const std::string& name) {
  const bool bare = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return bare ? name : quoted(name);
}

// With a decimal point, so that it reads back as a float.
std::string float_text(double x) {
  std::string text = fmt::format("{}", x);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

const KindInfo& kind_info(ConstraintKind kind) { return kKinds[size_t(kind)]; }

std::string entity_name(const Sketch& sketch, const EntityRef& ref) {
  const auto at = size_t(ref.index);
  return ref.kind == 'p'   ? sketch.points[at].name
         : ref.kind == 'l' ? sketch.lines[at].name
                           : sketch.circles[at].name;
}

Sketch parse_sketch(std::string_view text, std::string_view where) { return Parser(where)(text); }

Sketch read_sketch(const std::filesystem::path& path) {
  return io::parse_text_file(path, "a sketch as TOML", &parse_sketch);
}

std::string format_sketch(const Sketch& sketch) {
  std::string out;
  const auto point = [&](int32_t p) { return quoted(sketch.points[size_t(p)].name); };
  if (!sketch.name.empty()) out += fmt::format("name = {}\n\n", quoted(sketch.name));
  out += "[points]\n";
  for (const SketchPoint& p : sketch.points) {
    const std::string at = fmt::format("[{}, {}]", float_text(p.x), float_text(p.y));
    out += fmt::format("{} = {}\n", key(p.name),
                       p.pinned ? fmt::format("{{ at = {}, pinned = true }}", at) : at);
  }
  if (!sketch.lines.empty()) out += "\n[lines]\n";
  for (const SketchLine& line : sketch.lines)
    out += fmt::format("{} = [{}, {}]\n", key(line.name), point(line.a), point(line.b));
  for (const bool arcs : {false, true}) {
    bool first = true;
    for (const SketchCircle& c : sketch.circles) {
      if (c.is_arc() != arcs) continue;
      if (std::exchange(first, false)) out += arcs ? "\n[arcs]\n" : "\n[circles]\n";
      out += arcs ? fmt::format("{} = {{ center = {}, start = {}, end = {} }}\n", key(c.name),
                                point(c.center), point(c.start), point(c.end))
                  : fmt::format("{} = {{ center = {}, radius = {} }}\n", key(c.name), point(c.center),
                                float_text(c.radius));
    }
  }
  for (const SketchConstraint& c : sketch.constraints) {
    if (c.implied) continue;
    const KindInfo& info = kind_info(c.kind);
    std::vector<std::string> of;
    for (const EntityRef& ref : c.of) of.push_back(quoted(entity_name(sketch, ref)));
    out += fmt::format("\n[[constraints]]\nname = {}\nkind = \"{}\"\nof = [{}]\n", quoted(c.name), info.name,
                       fmt::join(of, ", "));
    if (info.value) out += fmt::format("value = {}\n", float_text(c.value));
    if (c.inside) out += "inside = true\n";
  }
  return out;
}

bool gives_length(const SketchConstraint& constraint) {
  return kind_info(constraint.kind).value && constraint.kind != ConstraintKind::angle;
}

double sketch_size(const Sketch& sketch) {
  double low_x = INFINITY, high_x = -INFINITY, low_y = INFINITY, high_y = -INFINITY, longest = 0;
  const auto cover = [&](double x, double y) {
    low_x = std::min(low_x, x), high_x = std::max(high_x, x);
    low_y = std::min(low_y, y), high_y = std::max(high_y, y);
  };
  const auto cover_point = [&](int32_t index) {
    cover(sketch.points[size_t(index)].x, sketch.points[size_t(index)].y);
  };
  for (const SketchConstraint& constraint : sketch.constraints)
    for (const EntityRef& ref : constraint.of) {
      if (ref.kind == 'p') cover_point(ref.index);
      if (ref.kind == 'l')
        for (const int32_t end : {sketch.lines[size_t(ref.index)].a, sketch.lines[size_t(ref.index)].b})
          cover_point(end);
      if (ref.kind != 'c') continue;
      const SketchCircle& c = sketch.circles[size_t(ref.index)];
      const SketchPoint& p = sketch.points[size_t(c.center)];
      cover(p.x - c.radius, p.y - c.radius);
      cover(p.x + c.radius, p.y + c.radius);
    }
  for (const SketchConstraint& c : sketch.constraints)
    if (gives_length(c)) longest = std::max(longest, c.value);
  const double size = std::max(std::hypot(high_x - low_x, high_y - low_y), longest);
  return size > 0 && std::isfinite(size) ? size : 1;
}

}  // namespace lockstep::solve::sketch
