// Styles of QGIS (.qml) for the grids of runs, in the colours of their pictures.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "urban/run/files/outputs.hpp"

namespace lockstep::urban {

/// A style with these classes (each up to a bound, halfway between values), or with the colours from `low` to `high`.
std::string style_of(const Look& look, double low, double high);
/// Of an output or a summary of `urban run`, as its picture shows it.
std::string style_of(std::string_view grid, double low, double high);
/// Next to a GeoTIFF, under its name with .qml; nothing next to other files.
void write_style(const std::filesystem::path& file, const std::string& style);

}  // namespace lockstep::urban
