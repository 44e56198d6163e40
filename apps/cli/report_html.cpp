#include "report_html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "io/text/file.hpp"

namespace lockstep::cli::html {
namespace {

constexpr const char* kColors[] = {"#4063a8", "#c2543d", "#3f8f5b", "#8a5bb0",
                                   "#b58a2a", "#3b8ea5", "#8c8c8c"};

std::string base64(const std::string& bytes) {
  constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t k = 0; k < bytes.size(); k += 3) {
    uint32_t word = 0;
    for (size_t j = 0; j < 3; ++j)
      word = word << 8 | (k + j < bytes.size() ? static_cast<unsigned char>(bytes[k + j]) : 0u);
    for (size_t j = 0; j < 4; ++j) out += k + j > bytes.size() ? '=' : kDigits[word >> (18 - 6 * j) & 63];
  }
  return out;
}

}  // namespace

std::string escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string table(const Table& t) {
  std::string out = "<div class=\"scroll\"><table><thead><tr>";
  for (const std::string& cell : t.head) out += "<th>" + escape(cell) + "</th>";
  out += "</tr></thead><tbody>\n";
  for (size_t row = 0; row < t.rows.size(); ++row) {
    const bool marked = std::find(t.marked.begin(), t.marked.end(), row) != t.marked.end();
    out += marked ? "<tr class=\"bad\">" : "<tr>";
    for (const std::string& cell : t.rows[row]) {
      const bool number = !cell.empty() && cell.find_first_not_of("0123456789.+-e%") == std::string::npos;
      out += (number ? "<td class=\"n\">" : "<td>") + escape(cell) + "</td>";
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string bar_chart(const std::string& title, const std::vector<std::pair<std::string, double>>& bars,
                      const std::string& unit) {
  double largest = 0;
  for (const auto& [name, value] : bars) largest = std::max(largest, value);
  if (bars.empty() || !(largest > 0)) return {};
  constexpr int kRow = 22, kLabel = 330, kBar = 420;
  std::string out = fmt::format(
      "<figure><svg role=\"img\" viewBox=\"0 0 {} {}\" width=\"{}\"><title>{}</title>\n", kLabel + kBar + 130,
      static_cast<int>(bars.size()) * kRow + 6, kLabel + kBar + 130, escape(title));
  for (size_t k = 0; k < bars.size(); ++k) {
    const int y = static_cast<int>(k) * kRow + 4;
    const double width = std::max(1.0, bars[k].second / largest * kBar);
    out += fmt::format(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text><rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" "
        "height=\"{}\" fill=\"{}\"/>"
        "<text x=\"{:.1f}\" y=\"{}\">{:.4g} {}</text>\n",
        kLabel - 8, y + 13, escape(bars[k].first), kLabel, y, width, kRow - 6, kColors[0], kLabel + width + 6,
        y + 13, bars[k].second, escape(unit));
  }
  return out + fmt::format("</svg><figcaption>{}</figcaption></figure>\n", escape(title));
}

std::string line_chart(const std::string& title, const std::vector<Series>& series, const std::string& x_unit,
                       const std::string& y_unit) {
  double x0 = std::numeric_limits<double>::infinity(), y0 = x0, x1 = -x0, y1 = -x0;
  for (const Series& s : series) {
    for (const auto& [x, y] : s.points) {
      if (!(x > 0 && y > 0)) continue;
      x0 = std::min(x0, std::log10(x));
      x1 = std::max(x1, std::log10(x));
      y0 = std::min(y0, std::log10(y));
      y1 = std::max(y1, std::log10(y));
    }
  }
  if (!(x1 > x0)) return {};
  y0 = std::floor(y0);
  y1 = std::max(std::ceil(y1), y0 + 1);
  constexpr int kLeft = 70, kTop = 14, kWidth = 620, kHeight = 300;
  const auto px = [&](double x) { return kLeft + (x - x0) / (x1 - x0) * kWidth; };
  const auto py = [&](double y) { return kTop + (y1 - y) / (y1 - y0) * kHeight; };
  const int legend = static_cast<int>(series.size()) * 18;
  std::string out = fmt::format(
      "<figure><svg role=\"img\" viewBox=\"0 0 {} {}\" width=\"{}\"><title>{}</title>\n",
      kLeft + kWidth + 250, std::max(kTop + kHeight + 40, legend + 20), kLeft + kWidth + 250, escape(title));
  for (double y = y0; y <= y1 + 1e-9; y += 1) {
    out += fmt::format(
        "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" class=\"grid\"/><text x=\"{}\" y=\"{:.1f}\" "
        "text-anchor=\"end\">{:g}</text>\n",
        kLeft, kLeft + kWidth, py(y), py(y), kLeft - 6, py(y) + 4, std::pow(10, y));
  }
  for (double x = std::ceil(x0 - 1e-9); x <= x1 + 1e-9; x += 1) {
    out += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" class=\"grid\"/><text x=\"{0:.1f}\" "
        "y=\"{3}\" text-anchor=\"middle\">{4:g}</text>\n",
        px(x), kTop, kTop + kHeight, kTop + kHeight + 16, std::pow(10, x));
  }
  out += fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text><text x=\"4\" y=\"10\">{}</text>\n",
      kLeft + kWidth / 2, kTop + kHeight + 34, escape(x_unit), escape(y_unit));
  for (size_t k = 0; k < series.size(); ++k) {
    const char* ink = kColors[k % std::size(kColors)];
    std::string path;
    for (const auto& [x, y] : series[k].points) {
      if (!(x > 0 && y > 0)) continue;
      const double u = px(std::log10(x)), v = py(std::log10(y));
      path += fmt::format("{}{:.1f},{:.1f} ", path.empty() ? "M" : "L", u, v);
      out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>", u, v, ink);
    }
    out += fmt::format(
        "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/><text x=\"{}\" y=\"{}\" "
        "fill=\"{}\">{}</text>\n",
        path, ink, kLeft + kWidth + 12, kTop + 12 + static_cast<int>(k) * 18, ink, escape(series[k].name));
  }
  return out + fmt::format("</svg><figcaption>{}</figcaption></figure>\n", escape(title));
}

std::string picture(const std::filesystem::path& file, const std::string& caption) {
  return fmt::format(
      "<figure class=\"map\"><img alt=\"{0}\" "
      "src=\"data:image/png;base64,{1}\"><figcaption>{0}</figcaption></figure>\n",
      escape(caption), base64(io::read_text_file(file, "a PNG picture")));
}

std::string page(const std::string& title, const std::string& body) {
  return fmt::format(R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>{0}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; color: #24262e; background: #fbfbfa; margin: 0 auto; max-width: 1180px; padding: 24px; }}
h1 {{ font-weight: 600; font-size: 26px; }} h2 {{ font-weight: 600; font-size: 19px; margin-top: 36px; border-bottom: 1px solid #d9dbe0; }}
.scroll {{ overflow-x: auto; }} table {{ border-collapse: collapse; font-size: 13px; }}
th, td {{ padding: 3px 10px; border-bottom: 1px solid #e4e6ea; text-align: left; white-space: nowrap; }}
th {{ background: #eff0f2; position: sticky; top: 0; }} td.n {{ text-align: right; font-variant-numeric: tabular-nums; }}
tr.bad td {{ background: #fbe3dd; }} figure {{ margin: 14px 0; }} figcaption {{ color: #5b606c; font-size: 13px; }}
.maps {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(340px, 1fr)); gap: 16px; }} .map img {{ width: 100%; height: auto; }}
svg {{ max-width: 100%; height: auto; font: 12px system-ui, sans-serif; }} .grid {{ stroke: #dfe1e6; }}
</style></head><body>
<h1>{0}</h1>
{1}</body></html>
)",
                     escape(title), body);
}

}  // namespace lockstep::cli::html
