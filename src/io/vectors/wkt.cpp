// Shapes as Well-Known Text, by themselves and in a column of CSV.
#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <optional>

#include "io/series/csv.hpp"
#include "io/text/text_scanner.hpp"
#include "io/vectors/features.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

class WktScanner {
 public:
  WktScanner(std::string_view text, const std::string& where) : rest_(text), where_(where) {}

  std::string word() {
    blanks();
    std::string word;
    while (!rest_.empty() && std::isalpha(static_cast<unsigned char>(rest_[0]))) {
      word += static_cast<char>(std::toupper(static_cast<unsigned char>(rest_[0])));
      rest_.remove_prefix(1);
    }
    return word;
  }
  bool take(char c) {
    blanks();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void require(char c) {
    if (!take(c)) fail(fmt::format("'{}'", c));
  }
  void end() {
    blanks();
    if (!rest_.empty()) fail("its end");
  }
  /// x and y; further numbers (z, m) are passed over.
  MapPoint point() {
    MapPoint p{number(), number()};
    while (!rest_.empty() && (std::isdigit(static_cast<unsigned char>(rest_[0])) || rest_[0] == '-'))
      number();
    return p;
  }
  MapRing ring() {
    MapRing ring;
    require('(');
    do ring.push_back(point());
    while (take(','));
    require(')');
    if (ring.size() > 1 && ring.front().x == ring.back().x && ring.front().y == ring.back().y)
      ring.pop_back();
    return ring;
  }
  void polygon(Feature& out) {
    out.polygons.push_back(out.rings.size());
    require('(');
    do out.rings.push_back(ring());
    while (take(','));
    require(')');
  }

 private:
  void blanks() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_[0]))) rest_.remove_prefix(1);
  }
  double number() {
    blanks();
    double value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) fail("a number");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    blanks();
    return value;
  }
  [[noreturn]] void fail(const std::string& expected) const {
    throw InputError(fmt::format("no WKT at '{}'", shown(rest_.substr(0, 20))), where_, expected);
  }

  std::string_view rest_;
  const std::string& where_;
};

constexpr std::array<std::string_view, 4> kShapeColumns = {"wkt", "geometry", "geom", "the_geom"};

}  // namespace

void take_wkt(std::string_view wkt, Feature& feature) {
  WktScanner scan(wkt, feature.where);
  feature.type = scan.word();
  if (feature.type.empty())
    throw InputError("no WKT", feature.where, "such as POLYGON ((0 0, 0 1, 1 1, 0 0))");
  std::string dimension = scan.word();
  if (dimension == "EMPTY") return feature.type.clear();
  if (dimension == "Z" || dimension == "M" || dimension == "ZM") dimension.clear();
  if (!dimension.empty()) throw InputError("no WKT", feature.where, "numbers after the type");
  if (feature.type == "POINT") {
    feature.kind = Feature::Kind::point;
    scan.require('(');
    feature.rings = {{scan.point()}};
    scan.require(')');
  } else if (feature.type == "POLYGON") {
    feature.kind = Feature::Kind::area;
    scan.polygon(feature);
  } else if (feature.type == "MULTIPOLYGON") {
    feature.kind = Feature::Kind::area;
    scan.require('(');
    do scan.polygon(feature);
    while (scan.take(','));
    scan.require(')');
  } else {
    return;
  }
  scan.end();
}

FeatureFile parse_wkt_csv(std::string_view text, const std::string& where) {
  FeatureFile file;
  std::vector<std::string> names;
  std::optional<size_t> shape;
  for_each_csv_row(text, where,
                   [&](const std::vector<std::string>& fields, bool first, const TextScanner& scan) {
                     if (first) {
                       names = fields;
                       for (size_t k = 0; k < names.size(); ++k) {
                         std::string small = names[k];
                         for (char& c : small)
                           c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
                         for (const std::string_view column : kShapeColumns)
                           if (small == column && !shape) shape = k;
                       }
                       if (!shape)
                         scan.fail("no column of shapes", "a column wkt, geometry, geom or the_geom");
                       return;
                     }
                     if (fields.size() != names.size())
                       scan.fail(fmt::format("{} fields", fields.size()),
                                 fmt::format("{} as in the header", names.size()));
                     Feature feature;
                     feature.where = scan.where();
                     for (size_t k = 0; k < fields.size(); ++k)
                       if (k != *shape) feature.fields.emplace_back(names[k], fields[k]);
                     take_wkt(fields[*shape], feature);
                     file.features.push_back(std::move(feature));
                   });
  return file;
}

}  // namespace lockstep::io
