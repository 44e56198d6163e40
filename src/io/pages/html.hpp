// Pieces of pages of HTML: tables, inline drawings, inlined pictures.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "io/pictures/drawing.hpp"

namespace lockstep::io::html {

struct Table {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
  /// Rows that are shown as failures, by number.
  std::vector<size_t> marked;
};
std::string table(const Table& table);

/// Names and their values, one below the other.
std::string facts(const std::vector<std::pair<std::string, std::string>>& rows);

std::string heading(const std::string& text, int level);

/// The drawing as an <svg> of the page.
std::string figure(const Drawing& drawing);

/// An <img> that holds the file itself and fills the window when it is clicked; `number` is the picture's own.
std::string picture(const std::string& bytes, const std::string& caption, size_t number);

/// A player that holds the film itself.
std::string film(const std::string& bytes);

/// A part that is not printed.
std::string on_screen(const std::string& body);

/// The whole page.
std::string page(const std::string& title, const std::string& body);

}  // namespace lockstep::io::html
