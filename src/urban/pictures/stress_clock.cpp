#include "urban/pictures/stress_clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>

#include "urban/pictures/step_picture.hpp"

namespace lockstep::urban {
namespace {

constexpr double kDialRadius = 130, kDialHole = 52, kDialMargin = 34, kClockTitle = 17, kClockText = 13;
constexpr double kSwatchSide = 14, kRowHeight = 22;
constexpr size_t kMostRings = 8;
constexpr io::Rgb kUnknownHour = {232, 234, 238};

double turn_of(double hour) { return hour / 24 * 2 * std::numbers::pi; }
io::Point on_dial(const io::Point& centre, double radius, double hour) {
  return {centre.x + radius * std::sin(turn_of(hour)), centre.y - radius * std::cos(turn_of(hour))};
}

/// A part of a ring, by chords of at most a quarter of an hour.
void draw_part(io::Drawing& out, const io::Point& centre, double inner, double outer, double from, double to,
               const io::Rgb& ink) {
  const int chords = std::max(1, static_cast<int>(std::ceil((to - from) * 4)));
  std::vector<io::Point> corners;
  for (int k = 0; k <= chords; ++k)
    corners.push_back(on_dial(centre, outer, from + (to - from) * k / chords));
  for (int k = chords; k >= 0; --k)
    corners.push_back(on_dial(centre, inner, from + (to - from) * k / chords));
  out.area(std::move(corners), ink);
}

/// The days in order; beyond kMostRings one of means.
std::vector<std::vector<StressHour>> rings_of(std::span<const StressHour> hours) {
  std::map<std::string, std::vector<StressHour>> days;
  for (const StressHour& h : hours) days[h.day].push_back(h);
  std::vector<std::vector<StressHour>> rings;
  if (days.size() <= kMostRings) {
    for (auto& [day, list] : days) rings.push_back(std::move(list));
    return rings;
  }
  std::map<double, std::pair<double, int>> sums;
  for (const StressHour& h : hours) {
    if (std::isnan(h.value_c)) continue;
    sums[h.hour].first += h.value_c;
    ++sums[h.hour].second;
  }
  rings.emplace_back();
  for (const auto& [hour, sum] : sums) rings.back().push_back({"", hour, sum.first / sum.second});
  return rings;
}

void draw_dial(io::Drawing& out, const io::Point& centre, const std::vector<std::vector<StressHour>>& rings,
               ComfortIndex index, double step_h) {
  const auto inks = stress_map_classes(index);
  const double width = (kDialRadius - kDialHole) / static_cast<double>(std::max<size_t>(1, rings.size()));
  for (size_t r = 0; r < rings.size(); ++r) {
    const double outer = kDialRadius - width * static_cast<double>(r), inner = outer - width + 1;
    draw_part(out, centre, inner, outer, 0, 24, kUnknownHour);
    for (const StressHour& h : rings[r]) {
      const int place = stress_class(index, h.value_c);
      if (place >= 0)
        draw_part(out, centre, inner, outer, h.hour - step_h, h.hour, inks[static_cast<size_t>(place)].ink);
    }
  }
  for (int hour = 0; hour < 24; ++hour) {
    const bool named = hour % 3 == 0;
    out.line(on_dial(centre, kDialRadius, hour), on_dial(centre, kDialRadius + (named ? 6 : 3), hour),
             {io::kFrameInk});
    if (!named) continue;
    const io::Point at = on_dial(centre, kDialRadius + 17, hour);
    out.text({at.x, at.y + 0.5 * io::cap_height(kClockText)}, std::to_string(hour),
             {.size = kClockText, .align = io::Align::middle});
  }
  out.text({centre.x, centre.y + 0.5 * io::cap_height(kClockTitle)},
           index == ComfortIndex::utci ? "UTCI" : "PET",
           {.size = kClockTitle, .align = io::Align::middle, .bold = true});
}

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

/// "2015-06-21T15:00" or with a blank, perhaps with seconds: the day and the hours since its midnight.
std::optional<StressHour> moment_in(const std::string& text) {
  if (text.size() < 16 || (text[10] != 'T' && text[10] != ' ') || text[13] != ':') return {};
  const auto hour = number_in(text.substr(11, 2)), minute = number_in(text.substr(14, 2));
  if (!hour || !minute) return {};
  return StressHour{text.substr(0, 10), *hour + *minute / 60, 0};
}

}  // namespace

io::Drawing draw_stress_clock(const std::string& title, ComfortIndex index, std::span<const StressHour> hours,
                              double step_h) {
  const auto rings = rings_of(hours);
  const auto classes = stress_map_classes(index);
  std::vector<double> spent(classes.size(), 0.0);
  for (const StressHour& h : hours)
    if (const int place = stress_class(index, h.value_c); place >= 0)
      spent[static_cast<size_t>(place)] += step_h;
  std::vector<std::pair<io::Rgb, std::string>> rows;
  for (size_t k = classes.size(); k-- > 0;)
    if (spent[k] > 0)
      rows.emplace_back(classes[k].ink, fmt::format("{}: {:g} h", classes[k].label, spent[k]));
  double words = io::text_width(title, kClockTitle, true);
  for (const auto& [ink, text] : rows)
    words = std::max(words, kSwatchSide + 10 + io::text_width(text, kClockText));
  const double side = 2 * (kDialRadius + kDialMargin), left = side + 20;
  io::Drawing out(std::ceil(left + words + 16), side);
  draw_dial(out, {side / 2, side / 2}, rings, index, step_h);
  double y = kDialMargin;
  out.text({left, y + io::cap_height(kClockTitle)}, title, {.size = kClockTitle, .bold = true});
  y += 34;
  const auto note = [&](const std::string& text) {
    out.text({left, y + io::cap_height(kClockText)}, text, {.size = kClockText, .ink = io::kFaintInk});
    y += kRowHeight;
  };
  std::vector<std::string> days;
  for (const StressHour& h : hours) days.push_back(h.day);
  std::sort(days.begin(), days.end());
  days.erase(std::unique(days.begin(), days.end()), days.end());
  if (days.size() == 1) note(days.front());
  if (days.size() > 1 && rings.size() > 1) note(fmt::format("{} (outside) to {}", days.front(), days.back()));
  if (days.size() > 1 && rings.size() == 1) note(fmt::format("means of {} days", days.size()));
  for (const auto& [ink, text] : rows) {
    out.rectangle({left, y, left + kSwatchSide, y + kSwatchSide}, ink);
    out.text({left + kSwatchSide + 10, y + 0.5 * (kSwatchSide + io::cap_height(kClockText))}, text,
             {.size = kClockText});
    y += kRowHeight;
  }
  return out;
}

std::vector<io::Drawing> stress_clocks(const std::vector<std::vector<std::string>>& rows) {
  if (rows.size() < 2) return {};
  const auto column = [&](std::string_view name) -> std::optional<size_t> {
    for (size_t k = 0; k < rows[0].size(); ++k) {
      std::string given = rows[0][k];
      std::transform(given.begin(), given.end(), given.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      if (given == name) return k;
    }
    return {};
  };
  const auto id = column("id"), time = column("time");
  if (!id || !time) return {};
  std::vector<io::Drawing> clocks;
  std::vector<std::string> points;
  for (size_t r = 1; r < rows.size(); ++r)
    if (*id < rows[r].size() && std::find(points.begin(), points.end(), rows[r][*id]) == points.end())
      points.push_back(rows[r][*id]);
  for (const std::string& point : points) {
    for (const auto& [index, name] : {std::pair{ComfortIndex::utci, "utci"}, {ComfortIndex::pet, "pet"}}) {
      const auto values = column(name);
      if (!values) continue;
      std::vector<StressHour> hours;
      bool any = false;
      for (const auto& row : rows) {
        if (row.size() != rows[0].size() || row[*id] != point) continue;
        auto moment = moment_in(row[*time]);
        if (!moment) continue;
        if (moment->hour == 0 && !hours.empty() && hours.back().day != moment->day) {
          moment->day = hours.back().day;  // what ends at midnight belongs to the day before
          moment->hour = 24;
        }
        moment->value_c = number_in(row[*values]).value_or(std::nan(""));
        any = any || !std::isnan(moment->value_c);
        hours.push_back(*moment);
      }
      double step = 24;
      for (size_t k = 1; k < hours.size(); ++k)
        if (hours[k].day == hours[k - 1].day && hours[k].hour > hours[k - 1].hour)
          step = std::min(step, hours[k].hour - hours[k - 1].hour);
      if (any) clocks.push_back(draw_stress_clock(point, index, hours, step < 24 ? step : 1));
    }
  }
  return clocks;
}

}  // namespace lockstep::urban
