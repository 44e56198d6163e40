// Pieces of the report page: escaped text, tables, inline SVG plots, inlined pictures.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::cli::html {

std::string escape(const std::string& text);

struct Table {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
  /// Rows that are shown as failures, by number.
  std::vector<size_t> marked;
};
std::string table(const Table& table);

/// Horizontal bars with their values; `unit` stands behind each.
std::string bar_chart(const std::string& title, const std::vector<std::pair<std::string, double>>& bars,
                      const std::string& unit);

/// Points of several series over a common axis; both axes logarithmic.
struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;
};
std::string line_chart(const std::string& title, const std::vector<Series>& series, const std::string& x_unit,
                       const std::string& y_unit);

/// An <img> that holds the file itself.
std::string picture(const std::filesystem::path& file, const std::string& caption);

/// The whole page.
std::string page(const std::string& title, const std::string& body);

}  // namespace lockstep::cli::html
