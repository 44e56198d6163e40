#include "io/pages/html.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/text/base64.hpp"

namespace lockstep::io::html {
namespace {

constexpr const char* kStyle = R"(
body { font: 15px/1.5 system-ui, sans-serif; color: #24262e; background: #fbfbfa; margin: 0 auto; max-width: 1180px; padding: 24px; }
h1 { font-weight: 600; font-size: 26px; } h3 { font-weight: 600; font-size: 16px; margin: 20px 0 6px; }
h2 { font-weight: 600; font-size: 19px; margin-top: 36px; border-bottom: 1px solid #d9dbe0; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; }
th, td { padding: 3px 10px; border-bottom: 1px solid #e4e6ea; text-align: left; white-space: nowrap; }
th { background: #eff0f2; position: sticky; top: 0; } td.n { text-align: right; font-variant-numeric: tabular-nums; }
tr.bad td { background: #fbe3dd; } figure { margin: 14px 0; } figcaption { color: #5b606c; font-size: 13px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 18px; font-size: 14px; margin: 10px 0; }
dt { color: #5b606c; } dd { margin: 0; overflow-wrap: anywhere; }
.maps { display: grid; grid-template-columns: repeat(auto-fill, minmax(340px, 1fr)); gap: 16px; }
.map img { width: 100%; height: auto; cursor: zoom-in; } .map input { position: absolute; opacity: 0; }
.map input:focus-visible + label img { outline: 3px solid #4063a8; }
.map input:checked + label { position: fixed; inset: 0; z-index: 2; overflow: auto; background: #fbfbfa; text-align: center; }
.map input:checked + label img { width: auto; max-width: 100%; max-height: 100vh; cursor: zoom-out; }
svg, video { max-width: 100%; height: auto; }
pre { background: #eff0f2; padding: 8px 12px; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; font-size: 13px; }
@page { size: A4; margin: 15mm; }
@media print { body { font-size: 10pt; max-width: none; padding: 0; background: none; } .scroll { overflow: visible; }
table { font-size: 8pt; } th, td { padding: 1px 5px; white-space: normal; overflow-wrap: anywhere; } th { position: static; }
.maps { grid-template-columns: 1fr 1fr; gap: 2mm; } .map { margin: 0; } .maps .map img { width: auto; max-width: 100%; max-height: 72mm; }
.maps.large { grid-template-columns: 1fr; } .maps.large .map img { max-height: 112mm; }
.map, figure, tr { break-inside: avoid; } h2, h3 { break-after: avoid; } .screen { display: none; } }
)";

}  // namespace

std::string table(const Table& t) {
  std::string out = "<div class=\"scroll\"><table><thead><tr>";
  for (const std::string& cell : t.head) out += "<th>" + xml_escaped(cell) + "</th>";
  out += "</tr></thead><tbody>\n";
  for (size_t row = 0; row < t.rows.size(); ++row) {
    const bool marked = std::find(t.marked.begin(), t.marked.end(), row) != t.marked.end();
    out += marked ? "<tr class=\"bad\">" : "<tr>";
    for (const std::string& cell : t.rows[row]) {
      const bool number = !cell.empty() && cell.find_first_not_of("0123456789.+-e%") == std::string::npos;
      out += (number ? "<td class=\"n\">" : "<td>") + xml_escaped(cell) + "</td>";
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string facts(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::string out = "<dl>\n";
  for (const auto& [name, value] : rows)
    out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", xml_escaped(name), xml_escaped(value));
  return out + "</dl>\n";
}

std::string heading(const std::string& text, int level) {
  return fmt::format("<h{0}>{1}</h{0}>\n", level, xml_escaped(text));
}

std::string figure(const Drawing& drawing) {
  std::string svg = drawing.svg();
  // Inside HTML an <svg> needs no namespace, and the page names no address.
  constexpr std::string_view kNamespace = " xmlns=\"http://www.w3.org/2000/svg\"";
  svg.erase(svg.find(kNamespace), kNamespace.size());
  return "<figure>" + svg + "</figure>\n";
}

std::string picture(const std::string& bytes, const std::string& caption, size_t number) {
  return fmt::format(
      "<figure class=\"map\"><input type=\"checkbox\" id=\"picture{2}\"><label for=\"picture{2}\"><img "
      "alt=\"{0}\" src=\"data:image/png;base64,{1}\"></label><figcaption>{0}</figcaption></figure>\n",
      xml_escaped(caption), base64(bytes), number);
}

std::string film(const std::string& bytes) {
  return fmt::format(
      "<figure><video controls muted loop src=\"data:video/mp4;base64,{}\"></video></figure>\n",
      base64(bytes));
}

std::string on_screen(const std::string& body) { return "<div class=\"screen\">\n" + body + "</div>\n"; }

std::string page(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">\n<title>{0}</title>\n<style>{1}</style></head><body>\n"
      "<h1>{0}</h1>\n{2}</body></html>\n",
      xml_escaped(title), kStyle, body);
}

}  // namespace lockstep::io::html
