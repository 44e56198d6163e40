// Checks that the weather readers share: limits of values, order of times.
#pragma once

#include "io/series/weather/weather.hpp"

namespace lockstep::io {

/// Takes a value into a row; one that weather cannot have as WeatherRow::impossible. Radiation of down to -10 W/m², as
/// instruments give at night, becomes 0.
void take_value(WeatherRow& row, Weather quantity, double value);

/// Appends a row behind the others. Throws InputError where its time is not later than theirs.
void append_row(WeatherTable& table, const WeatherRow& row);

/// Finds the step and checks that times are multiples of it apart.
void finish_rows(WeatherTable& table);

}  // namespace lockstep::io
