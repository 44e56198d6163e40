#include "io/pictures/drawing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/files/atomic_file.hpp"

namespace lockstep::io {
namespace {

std::string svg_color(const Rgb& c) { return fmt::format("#{:02x}{:02x}{:02x}", c[0], c[1], c[2]); }

// At most two decimals, without trailing zeros.
std::string svg_number(double v) {
  std::string text = fmt::format("{:.2f}", v);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string svg_look(const std::optional<Rgb>& fill, const std::optional<Pen>& pen) {
  std::string out = fmt::format(" fill=\"{}\"", fill ? svg_color(*fill) : "none");
  if (!pen) return out;
  out += fmt::format(" stroke=\"{}\" stroke-width=\"{}\" stroke-linecap=\"round\" stroke-linejoin=\"round\"",
                     svg_color(pen->ink), svg_number(pen->width));
  if (!pen->dashes.empty()) {
    std::vector<std::string> lengths;
    for (const double d : pen->dashes) lengths.push_back(svg_number(d));
    out += fmt::format(" stroke-dasharray=\"{}\"", fmt::join(lengths, " "));
  }
  return out;
}

/// Bytes of the character that a text begins with; 0 where it is not UTF-8 or XML does not know it.
size_t character_bytes(std::string_view text) {
  const auto at = [&](size_t k) { return static_cast<unsigned char>(k < text.size() ? text[k] : 0); };
  const unsigned first = at(0);
  const size_t bytes = first < 0x80                    ? 1
                       : first >= 0xc2 && first < 0xe0 ? 2
                       : first >= 0xe0 && first < 0xf0 ? 3
                       : first >= 0xf0 && first < 0xf5 ? 4
                                                       : 0;
  if (bytes < 2)
    return bytes == 1 && ((first >= 0x20 && first != 0x7f) || first == '\t' || first == '\n') ? 1 : 0;
  uint32_t code = first & (0xffu >> (bytes + 1));
  for (size_t k = 1; k < bytes; ++k) {
    if ((at(k) & 0xc0) != 0x80) return 0;
    code = code << 6 | (at(k) & 0x3f);
  }
  const uint32_t smallest = bytes == 2 ? 0xa0 : bytes == 3 ? 0x800 : 0x10000;  // below 0xa0 are controls
  const bool none = code < smallest || (code >= 0xd800 && code < 0xe000) || code == 0xfffe ||
                    code == 0xffff || code > 0x10ffff;
  return none ? 0 : bytes;
}

Box moved(const Box& b, Point by) { return {b.left + by.x, b.top + by.y, b.right + by.x, b.bottom + by.y}; }
Point moved(Point p, Point by) { return {p.x + by.x, p.y + by.y}; }

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (size_t k = 0; k < text.size();) {
    const size_t bytes = character_bytes(text.substr(k));
    const std::string_view character = text.substr(k, std::max<size_t>(bytes, 1));
    k += character.size();
    if (bytes == 0)
      out += "\uFFFD";
    else if (character == "&")
      out += "&amp;";
    else if (character == "<")
      out += "&lt;";
    else if (character == ">")
      out += "&gt;";
    else if (character == "\"")
      out += "&quot;";
    else if (character == "'")
      out += "&#39;";
    else
      out += character;
  }
  return out;
}

void Drawing::polyline(std::vector<Point> points, const Pen& pen) {
  if (!points.empty()) items_.push_back(Path{std::move(points), false, std::nullopt, pen});
}
void Drawing::area(std::vector<Point> corners, const Rgb& fill) {
  if (corners.size() > 2) items_.push_back(Path{std::move(corners), true, fill, std::nullopt});
}
void Drawing::rectangle(const Box& b, const Rgb& fill) {
  area({{b.left, b.top}, {b.right, b.top}, {b.right, b.bottom}, {b.left, b.bottom}}, fill);
}
void Drawing::outline(const Box& b, const Pen& pen) {
  items_.push_back(Path{
      {{b.left, b.top}, {b.right, b.top}, {b.right, b.bottom}, {b.left, b.bottom}}, true, std::nullopt, pen});
}
void Drawing::circle(Point center, double radius, const std::optional<Rgb>& fill,
                     const std::optional<Pen>& pen) {
  items_.push_back(Circle{center, radius, fill, pen});
}
void Drawing::arc(Point center, double radius, double from, double sweep, const Pen& pen) {
  items_.push_back(Arc{center, radius, from, sweep, pen});
}

Box Drawing::text(Point baseline, std::string text, const Lettering& lettering) {
  const double width = text_width(text, lettering.size, lettering.bold);
  const double share = lettering.align == Align::left ? 0 : lettering.align == Align::middle ? 0.5 : 1;
  const double left = baseline.x - share * width;
  const Box box{left, baseline.y - cap_height(lettering.size), left + width,
                baseline.y + descent(lettering.size)};
  if (!text.empty()) items_.push_back(Words{{left, baseline.y}, std::move(text), lettering, box});
  return box;
}

void Drawing::append(const Drawing& other, Point offset) {
  for (Item item : other.items_) {
    if (auto* path = std::get_if<Path>(&item)) {
      for (Point& p : path->points) p = moved(p, offset);
    } else if (auto* circle = std::get_if<Circle>(&item)) {
      circle->center = moved(circle->center, offset);
    } else if (auto* arc = std::get_if<Arc>(&item)) {
      arc->center = moved(arc->center, offset);
    } else {
      auto& words = std::get<Words>(item);
      words.at = moved(words.at, offset);
      words.box = moved(words.box, offset);
    }
    items_.push_back(std::move(item));
  }
}

std::vector<Box> Drawing::text_boxes() const {
  std::vector<Box> boxes;
  for (const Item& item : items_)
    if (const auto* words = std::get_if<Words>(&item)) boxes.push_back(words->box);
  return boxes;
}

std::string Drawing::svg() const {
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"DejaVu Sans, Verdana, sans-serif\">\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"{2}\"/>\n",
      svg_number(width_), svg_number(height_), svg_color(kPaper));
  for (const Item& item : items_) {
    if (const auto* path = std::get_if<Path>(&item)) {
      std::string d;
      for (const Point& p : path->points)
        d += fmt::format("{}{} {}", d.empty() ? "M" : "L", svg_number(p.x), svg_number(p.y));
      out +=
          fmt::format("<path d=\"{}{}\"{}/>\n", d, path->closed ? "Z" : "", svg_look(path->fill, path->pen));
    } else if (const auto* c = std::get_if<Circle>(&item)) {
      out += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{}/>\n", svg_number(c->center.x),
                         svg_number(c->center.y), svg_number(c->radius), svg_look(c->fill, c->pen));
    } else if (const auto* a = std::get_if<Arc>(&item)) {
      const auto at = [&](double angle) {
        return Point{a->center.x + a->radius * std::cos(angle), a->center.y - a->radius * std::sin(angle)};
      };
      const Point s = at(a->from), e = at(a->from + a->sweep);
      out += fmt::format("<path d=\"M{} {}A{} {} 0 {} {} {} {}\"{}/>\n", svg_number(s.x), svg_number(s.y),
                         svg_number(a->radius), svg_number(a->radius),
                         std::abs(a->sweep) > std::numbers::pi ? 1 : 0, a->sweep > 0 ? 0 : 1, svg_number(e.x),
                         svg_number(e.y), svg_look(std::nullopt, a->pen));
    } else {
      // Anchored as it was requested: the reader's face may be of another width.
      const auto& w = std::get<Words>(item);
      const Align align = w.lettering.align;
      const double x = align == Align::left    ? w.box.left
                       : align == Align::right ? w.box.right
                                               : 0.5 * (w.box.left + w.box.right);
      out += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\"", svg_number(x),
                         svg_number(w.at.y), svg_number(w.lettering.size), svg_color(w.lettering.ink));
      if (align != Align::left)
        out += fmt::format(" text-anchor=\"{}\"", align == Align::middle ? "middle" : "end");
      if (w.lettering.bold) out += " font-weight=\"bold\"";
      if (w.lettering.halo)
        out +=
            fmt::format(" stroke=\"{}\" stroke-width=\"4\" stroke-linejoin=\"round\" paint-order=\"stroke\"",
                        svg_color(kPaper));
      out += fmt::format(">{}</text>\n", xml_escaped(w.text));
    }
  }
  return out + "</svg>\n";
}

Image Drawing::image() const {
  Image image(static_cast<int>(std::ceil(width_)), static_cast<int>(std::ceil(height_)), 3, 255);
  paint(image);
  image.texts = labels_;
  return image;
}

void Drawing::set_label(std::string keyword, std::string text) {
  if (!text.empty()) labels_.emplace_back(std::move(keyword), std::move(text));
}

void write_drawing(const std::filesystem::path& path, const Drawing& drawing) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (ending == ".svg") {
    write_file(path, std::string_view(drawing.svg()));
  } else {
    write_png(path, drawing.image());
  }
}

std::string shortened(std::string_view text, double room, double size, bool bold) {
  if (text_width(text, size, bold) <= room) return std::string(text);
  std::string out(text);
  while (!out.empty()) {
    // Whole characters: what follows the first byte of one goes with it.
    while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xc0) == 0x80) out.pop_back();
    if (!out.empty()) out.pop_back();
    if (text_width(out + "…", size, bold) <= room) break;
  }
  return out + "…";
}

std::vector<std::string> wrapped(std::string_view text, double room, double size, bool bold) {
  std::vector<std::string> lines;
  std::string line;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string longer = (line.empty() ? line : line + " ") + std::string(text.substr(at, end - at));
    if (!line.empty() && text_width(longer, size, bold) > room) {
      lines.push_back(line);
      line = text.substr(at, end - at);
    } else {
      line = longer;
    }
    at = end + 1;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

}  // namespace lockstep::io
