// Drawings of lines, areas and words, painted as pixels and written as SVG alike. Lengths are pixels of the
// picture, from its upper left corner, y downwards.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "io/pictures/colormap.hpp"
#include "io/pictures/png.hpp"

namespace lockstep::io {

inline constexpr Rgb kInk = {38, 42, 52}, kFaintInk = {98, 104, 116}, kFrameInk = {120, 126, 138},
                     kGridInk = {228, 230, 234}, kPaper = {255, 255, 255};

struct Point {
  double x = 0, y = 0;
};

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
  double width() const { return right - left; }
  double height() const { return bottom - top; }
  bool overlaps(const Box& b) const {
    return left < b.right && b.left < right && top < b.bottom && b.top < bottom;
  }
  Box grown(double by) const { return {left - by, top - by, right + by, bottom + by}; }
};

struct Pen {
  Rgb ink = kInk;
  double width = 1;
  std::vector<double> dashes = {};  ///< lengths of dash, gap, …; empty for a whole line
};

enum class Align { left, middle, right };

struct Lettering {
  double size = 14;  ///< of the em square
  Rgb ink = kInk;
  Align align = Align::left;
  bool bold = false;
  bool halo = false;  ///< a rim of paper, for words over lines
};

/// Width of a line of UTF-8 in the embedded face (DejaVu Sans), kerned.
double text_width(std::string_view text, double size, bool bold = false);
/// Height of capitals, and depth below the baseline, of letters of that size.
double cap_height(double size);
double descent(double size);
/// The text cut with "…" where it is wider than `room`.
std::string shortened(std::string_view text, double room, double size, bool bold = false);
/// The text broken at blanks into lines of at most `room`; a longer word gets its own line.
std::vector<std::string> wrapped(std::string_view text, double room, double size, bool bold = false);

/// A list of drawn shapes, in order. Arguments are finite.
class Drawing {
 public:
  Drawing(double width, double height) : width_(width), height_(height) {}

  void line(Point a, Point b, const Pen& pen = {}) { polyline({a, b}, pen); }
  void polyline(std::vector<Point> points, const Pen& pen = {});
  void area(std::vector<Point> corners, const Rgb& fill);
  void rectangle(const Box& box, const Rgb& fill);
  void outline(const Box& box, const Pen& pen = {});
  void circle(Point center, double radius, const std::optional<Rgb>& fill,
              const std::optional<Pen>& pen = {});
  /// Angles in radians, counterclockwise from the right, as the picture is seen.
  void arc(Point center, double radius, double from, double sweep, const Pen& pen = {});
  /// One line of text on its baseline; gives the box that it covers.
  Box text(Point baseline, std::string text, const Lettering& lettering = {});
  void append(const Drawing& other, Point offset);

  /// Title, Unit: of the PNG.
  void set_label(std::string keyword, std::string text);
  void take_labels(const Drawing& other) { labels_ = other.labels_; }
  double width() const { return width_; }
  double height() const { return height_; }
  void set_size(double width, double height) {
    width_ = width;
    height_ = height;
  }
  /// Boxes of all words, in the order of drawing.
  std::vector<Box> text_boxes() const;

  /// A whole <svg> element; words stay words, in DejaVu Sans or what the reader has.
  std::string svg() const;
  /// Paints over an image of three channels.
  void paint(Image& image, Point offset = {}) const;
  /// On white paper.
  Image image() const;

 private:
  struct Path {
    std::vector<Point> points;
    bool closed = false;
    std::optional<Rgb> fill;
    std::optional<Pen> pen;
  };
  struct Circle {
    Point center;
    double radius = 0;
    std::optional<Rgb> fill;
    std::optional<Pen> pen;
  };
  struct Arc {
    Point center;
    double radius = 0, from = 0, sweep = 0;
    Pen pen;
  };
  struct Words {
    Point at;  // left end of the baseline
    std::string text;
    Lettering lettering;
    Box box;
  };
  using Item = std::variant<Path, Circle, Arc, Words>;

  double width_, height_;
  std::vector<Item> items_;
  std::vector<std::pair<std::string, std::string>> labels_;
};

/// `&`, `<`, `>` and quotes as XML has them.
std::string xml_escaped(std::string_view text);

/// SVG where the name ends in .svg, else PNG. Throws InputError if the file cannot be written.
void write_drawing(const std::filesystem::path& path, const Drawing& drawing);

}  // namespace lockstep::io
