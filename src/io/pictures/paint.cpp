// Words and strokes as pixels, by FreeType: one rasteriser for letters, lines and areas.
#include <ft2build.h>
#include FT_FREETYPE_H
#include FT_OUTLINE_H
#include FT_STROKER_H

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <span>

#include "io/pictures/drawing.hpp"
#include "io/pictures/fonts/fonts.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

void check_freetype(FT_Error error, const char* what) {
  if (error) throw InternalError(fmt::format("FreeType says {} ({})", error, what), "pictures", "");
}

// FreeType's objects belong to one thread; pictures are drawn in several.
class Faces {
 public:
  Faces() {
    check_freetype(FT_Init_FreeType(&library_), "library");
    faces_[0] = open(fonts::regular());
    faces_[1] = open(fonts::bold());
    check_freetype(FT_Stroker_New(library_, &stroker_), "stroker");
  }
  ~Faces() {
    FT_Stroker_Done(stroker_);
    FT_Done_FreeType(library_);  // and its faces
  }
  Faces(const Faces&) = delete;
  Faces& operator=(const Faces&) = delete;

  FT_Library library() const { return library_; }
  FT_Stroker stroker() const { return stroker_; }
  FT_Face face(double size, bool bold) {
    FT_Face face = faces_[bold];
    check_freetype(FT_Set_Char_Size(face, 0, std::lround(size * 64), 72, 72), "size");
    return face;
  }
  static Faces& here() {
    static thread_local Faces faces;
    return faces;
  }

 private:
  FT_Face open(std::span<const unsigned char> bytes) {
    FT_Face face;
    check_freetype(FT_New_Memory_Face(library_, bytes.data(), static_cast<FT_Long>(bytes.size()), 0, &face),
                   "face");
    return face;
  }
  FT_Library library_ = nullptr;
  FT_Face faces_[2] = {};
  FT_Stroker stroker_ = nullptr;
};

// The next character; malformed bytes count as unknown characters.
char32_t next_code(std::string_view text, size_t& at) {
  constexpr char32_t kUnknown = 0xfffd;
  const auto lead = static_cast<unsigned char>(text[at++]);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : -1;
  if (more < 0) return kUnknown;
  char32_t code = lead & (0x3fu >> more);
  for (int k = 0; k < more; ++k) {
    if (at >= text.size() || (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80) return kUnknown;
    code = code << 6 | (static_cast<unsigned char>(text[at++]) & 0x3fu);
  }
  return code;
}

// Calls `each(glyph, x)` with the glyph's number and its place from the start; gives the whole width.
template <class F>
double set_line(FT_Face face, std::string_view text, FT_Int32 flags, F each) {
  double x = 0;
  FT_UInt previous = 0;
  for (size_t at = 0; at < text.size();) {
    const char32_t code = next_code(text, at);
    if (code < 32) continue;
    FT_UInt glyph = FT_Get_Char_Index(face, code);
    if (!glyph) glyph = FT_Get_Char_Index(face, 0xfffd);
    FT_Vector kerning{0, 0};
    if (previous) FT_Get_Kerning(face, previous, glyph, FT_KERNING_UNFITTED, &kerning);
    x += static_cast<double>(kerning.x) / 64;
    check_freetype(FT_Load_Glyph(face, glyph, flags), "glyph");
    each(x);
    x += static_cast<double>(face->glyph->linearHoriAdvance) / 65536;
    previous = glyph;
  }
  return x;
}

// Fills outlines on an image: coordinates of outlines are 26.6, y upwards from the image's lower edge.
class Painter {
 public:
  Painter(Image& image, Point offset) : image_(image), offset_(offset) {}

  FT_Vector place(Point p) const {
    const auto fixed = [](double v) { return std::lround(std::clamp(v, -8000.0, 24000.0) * 64); };
    return {fixed(p.x + offset_.x), fixed(image_.height - p.y - offset_.y)};
  }

  void fill(FT_Outline& outline, const Rgb& ink) { check_freetype(render(outline, ink), "outline"); }

  FT_Error render(FT_Outline& outline, const Rgb& ink) {
    struct Target {
      Image& image;
      Rgb ink;
    } target{image_, ink};
    FT_Raster_Params parameters{};
    parameters.flags = FT_RASTER_FLAG_AA | FT_RASTER_FLAG_DIRECT | FT_RASTER_FLAG_CLIP;
    parameters.clip_box = {0, 0, image_.width, image_.height};
    parameters.user = &target;
    parameters.gray_spans = [](int y, int count, const FT_Span* spans, void* user) {
      auto& to = *static_cast<Target*>(user);
      for (const FT_Span& span : std::span(spans, static_cast<size_t>(count))) {
        for (int k = 0; k < span.len; ++k) {
          uint8_t* pixel = to.image.at(span.x + k, to.image.height - 1 - y);
          for (size_t c = 0; c < 3; ++c)
            pixel[c] =
                static_cast<uint8_t>(pixel[c] + (int{to.ink[c]} - int{pixel[c]}) * int{span.coverage} / 255);
        }
      }
    };
    return FT_Outline_Render(Faces::here().library(), &outline, &parameters);
  }

  void fill(std::span<const Point> corners, const Rgb& ink) {
    std::vector<FT_Vector> points;
    for (const Point& p : corners) points.push_back(place(p));
    if (points.size() > 32000)
      throw InternalError(fmt::format("{} corners", points.size()), "an area of a picture", "at most 32000");
    std::vector<char> tags(points.size(), FT_CURVE_TAG_ON);
    auto last = static_cast<short>(points.size() - 1);
    FT_Outline outline{1,     static_cast<short>(points.size()), points.data(), tags.data(),
                       &last, FT_OUTLINE_HIGH_PRECISION};
    fill(outline, ink);
  }

  // Round ends and corners; long lines in parts that FreeType's 16-bit counts hold.
  void stroke(std::span<const Point> points, double width, const Rgb& ink) {
    constexpr size_t kPart = 1000;
    for (size_t from = 0; from == 0 || from + 1 < points.size(); from += kPart)
      stroke_part(points.subspan(from, std::min(kPart + 1, points.size() - from)), width, ink);
  }

  /// False where FreeType's renderer overflows, as on some long flat corners; parts of the line then go through.
  bool fill_stroker(const Rgb& ink) {
    FT_Stroker stroker = Faces::here().stroker();
    FT_UInt points = 0, contours = 0;
    check_freetype(FT_Stroker_GetCounts(stroker, &points, &contours), "stroke");
    FT_Outline outline;
    check_freetype(FT_Outline_New(Faces::here().library(), points, static_cast<FT_Int>(contours), &outline),
                   "stroke");
    outline.n_points = outline.n_contours = 0;
    FT_Stroker_Export(stroker, &outline);
    const FT_Error error = render(outline, ink);
    FT_Outline_Done(Faces::here().library(), &outline);
    if (error != FT_Err_Raster_Overflow) check_freetype(error, "outline");
    return !error;
  }

  static void set_stroke(double width) {
    FT_Stroker_Set(Faces::here().stroker(), std::lround(width * 32), FT_STROKER_LINECAP_ROUND,
                   FT_STROKER_LINEJOIN_ROUND, 0);
  }

 private:
  void stroke_part(std::span<const Point> points, double width, const Rgb& ink) {
    FT_Stroker stroker = Faces::here().stroker();
    set_stroke(width);
    FT_Vector last = place(points.front());
    check_freetype(FT_Stroker_BeginSubPath(stroker, &last, 1), "stroke");
    bool any = false;
    for (const Point& p : points) {
      FT_Vector next = place(p);
      if (next.x == last.x && next.y == last.y) continue;
      check_freetype(FT_Stroker_LineTo(stroker, &next), "stroke");
      last = next;
      any = true;
    }
    if (!any) {
      // A stroke without length is the dot of its round ends.
      FT_Vector next{last.x + 1, last.y};
      check_freetype(FT_Stroker_LineTo(stroker, &next), "stroke");
    }
    check_freetype(FT_Stroker_EndSubPath(stroker), "stroke");
    if (fill_stroker(ink)) return;
    if (points.size() < 3) check_freetype(FT_Err_Raster_Overflow, "stroke");
    const size_t half = points.size() / 2;
    stroke_part(points.first(half + 1), width, ink);
    stroke_part(points.subspan(half), width, ink);
  }

  Image& image_;
  const Point offset_;
};

std::vector<Point> on_arc(Point center, double radius, double from, double sweep) {
  const int count = std::clamp(static_cast<int>(std::abs(sweep) * (4 + std::sqrt(radius) * 4)), 8, 720);
  std::vector<Point> points;
  for (int k = 0; k <= count; ++k) {
    const double angle = from + sweep * k / count;
    points.push_back({center.x + radius * std::cos(angle), center.y - radius * std::sin(angle)});
  }
  return points;
}

// The parts of a line that its dashes cover.
std::vector<std::vector<Point>> dashed(const std::vector<Point>& points, const std::vector<double>& dashes) {
  std::vector<std::vector<Point>> parts(1, {points.front()});
  size_t dash = 0;
  double left = dashes[0];
  for (size_t k = 1; k < points.size(); ++k) {
    Point a = points[k - 1];
    const Point b = points[k];
    double length = std::hypot(b.x - a.x, b.y - a.y);
    while (length > left) {
      a = {a.x + (b.x - a.x) * left / length, a.y + (b.y - a.y) * left / length};
      length -= left;
      if (dash % 2 == 0) {
        parts.back().push_back(a);
      } else {
        parts.push_back({a});
      }
      dash = (dash + 1) % dashes.size();
      left = std::max(dashes[dash], 0.25);
    }
    left -= length;
    if (dash % 2 == 0) parts.back().push_back(b);
  }
  return parts;
}

void stroke(Painter& painter, std::vector<Point> points, bool closed, const Pen& pen) {
  if (closed) points.push_back(points.front());
  if (pen.dashes.size() < 2) return painter.stroke(points, pen.width, pen.ink);
  for (const auto& part : dashed(points, pen.dashes)) painter.stroke(part, pen.width, pen.ink);
}

void paint_words(Painter& painter, Point at, std::string_view text, const Lettering& lettering) {
  Faces& faces = Faces::here();
  FT_Face face = faces.face(lettering.size, lettering.bold);
  // A baseline between two rows of pixels would blur what hinting made sharp.
  const FT_Vector start = painter.place({at.x, std::round(at.y)});
  for (int layer = lettering.halo ? 0 : 1; layer < 2; ++layer) {
    // Light hinting moves outlines in y alone, so that lines of letters are sharp and advances stay linear.
    set_line(face, text, FT_LOAD_NO_BITMAP | FT_LOAD_TARGET_LIGHT, [&](double x) {
      FT_Outline& outline = face->glyph->outline;
      FT_Outline_Translate(&outline, start.x + std::lround(x * 64), start.y);
      if (layer == 1) return painter.fill(outline, lettering.ink);
      if (outline.n_points == 0) return;
      Painter::set_stroke(4);
      check_freetype(FT_Stroker_ParseOutline(faces.stroker(), &outline, 0), "halo");
      painter.fill_stroker(kPaper);
    });
  }
}

}  // namespace

double text_width(std::string_view text, double size, bool bold) {
  return set_line(Faces::here().face(size, bold), text, FT_LOAD_NO_BITMAP | FT_LOAD_NO_HINTING,
                  [](double) {});
}
double cap_height(double size) { return 0.73 * size; }
double descent(double size) { return 0.24 * size; }

void Drawing::paint(Image& image, Point offset) const {
  if (image.channels != 3)
    throw InternalError(fmt::format("{} channels", image.channels), "Drawing::paint", "3");
  Painter painter(image, offset);
  for (const Item& item : items_) {
    if (const auto* path = std::get_if<Path>(&item)) {
      if (path->fill) painter.fill(path->points, *path->fill);
      if (path->pen) stroke(painter, path->points, path->closed, *path->pen);
    } else if (const auto* c = std::get_if<Circle>(&item)) {
      const auto points = on_arc(c->center, c->radius, 0, 2 * std::numbers::pi);
      if (c->fill) painter.fill(points, *c->fill);
      if (c->pen) stroke(painter, points, true, *c->pen);
    } else if (const auto* a = std::get_if<Arc>(&item)) {
      stroke(painter, on_arc(a->center, a->radius, a->from, a->sweep), false, a->pen);
    } else {
      const auto& words = std::get<Words>(item);
      paint_words(painter, words.at, words.text, words.lettering);
    }
  }
}

}  // namespace lockstep::io
